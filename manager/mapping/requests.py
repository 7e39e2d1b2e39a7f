"""Whether what a pod asks for can ever be: addresses, MACs, room. Whether it can be now, the store knows."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from contrail_config.objects import VirtualNetwork, interface_mac, interface_uuid
from manager.mapping.addresses import families, never_given, room
from manager.mapping.draft import InterfaceDraft
from manager.mapping.errors import PodRefusedError
from manager.mapping.unfit import clash, unfit
from manager.reasons import Reason
from manager.source import Pod


def refuse_impossible(pod: Pod, drafts: Sequence[InterfaceDraft]) -> None:
    """Raises an error for an address or MAC that cannot be had, or more interfaces than a network has room.

    PodWaitsError if other networks under the same names could give it, else PodRefusedError.
    """
    _refuse_addresses(pod, drafts)
    _refuse_equal_macs(pod, drafts)
    _refuse_crowds(drafts)


def _refuse_addresses(pod: Pod, drafts: Sequence[InterfaceDraft]) -> None:
    asked: dict[tuple[str, str], InterfaceDraft] = {}
    for draft in drafts:
        for wish in draft.wishes:
            message = f"{draft.nad}: address {wish} cannot be given"
            if problem := never_given(draft.network, wish):
                raise unfit(Reason.ADDRESS_UNAVAILABLE, f"{message}: {problem}", draft, pod=pod)
            other = asked.setdefault((draft.network.uuid, wish), draft)
            if other is not draft:
                message = f"{message}: two interfaces of the pod ask for it"
                raise clash(Reason.ADDRESS_UNAVAILABLE, message, [other, draft], pod=pod)


def _refuse_equal_macs(pod: Pod, drafts: Sequence[InterfaceDraft]) -> None:
    if all(draft.mac is None for draft in drafts):
        return
    bearers = defaultdict[tuple[str, str], list[InterfaceDraft]](list)
    for index, draft in enumerate(drafts):
        mac = draft.mac or interface_mac(interface_uuid(pod.uid, index))
        bearers[draft.network.uuid, mac].append(draft)
    (_, mac), most = max(bearers.items(), key=_number)
    if len(most) > 1:
        message = f"{most[0].nad}: {len(most)} interfaces of the pod would have MAC {mac}"
        raise clash(Reason.MAC_ADDRESS_TAKEN, message, most, pod=pod)


def _number(bearers: tuple[tuple[str, str], list[InterfaceDraft]]) -> int:
    return len(bearers[1])


def _refuse_crowds(drafts: Sequence[InterfaceDraft]) -> None:
    """Refused, though a larger network may be made: who waits for addresses stands in a line, and this holds it up."""
    interfaces = Counter(draft.network.uuid for draft in drafts)
    networks: dict[str, VirtualNetwork] = {draft.network.uuid: draft.network for draft in drafts}
    for uuid, number in interfaces.items():
        for family in families(networks[uuid]):
            if number > (free := room(networks[uuid], family=family, enough=number)):
                message = f"network {networks[uuid].name} has room for {free} IPv{family} interfaces, not for {number}"
                raise PodRefusedError(Reason.ADDRESSES_EXHAUSTED, message)
