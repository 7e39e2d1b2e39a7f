"""Whether what a pod asks for can ever be: addresses, MACs, room. Whether it can be now, the store knows."""

from collections import Counter
from collections.abc import Sequence

from contrail_config.objects import VirtualNetwork, interface_mac, interface_uuid
from manager.mapping.addresses import families, never_given, room
from manager.mapping.draft import InterfaceDraft
from manager.mapping.errors import PodRefusedError
from manager.reasons import Reason


def refuse_impossible(pod_uid: str, drafts: Sequence[InterfaceDraft]) -> None:
    """Raises PodRefusedError for an address or MAC that cannot be had, or more interfaces than a network has room."""
    _refuse_addresses(drafts)
    _refuse_equal_macs(pod_uid, drafts)
    _refuse_crowds(drafts)


def _refuse_addresses(drafts: Sequence[InterfaceDraft]) -> None:
    asked: set[tuple[str, str]] = set()
    for draft in drafts:
        for wish in draft.wishes:
            problem = never_given(draft.network, wish)
            if (draft.network.uuid, wish) in asked:
                problem = "two interfaces of the pod ask for it"
            if problem is not None:
                message = f"{draft.nad}: address {wish} cannot be given: {problem}"
                raise PodRefusedError(Reason.ADDRESS_UNAVAILABLE, message)
            asked.add((draft.network.uuid, wish))


def _refuse_equal_macs(pod_uid: str, drafts: Sequence[InterfaceDraft]) -> None:
    if all(draft.mac is None for draft in drafts):
        return
    macs = [
        (draft.network.uuid, draft.mac or interface_mac(interface_uuid(pod_uid, index)))
        for index, draft in enumerate(drafts)
    ]
    (key, number), *_ = Counter(macs).most_common(1)
    if number > 1:
        nad = drafts[macs.index(key)].nad
        raise PodRefusedError(
            Reason.MAC_ADDRESS_TAKEN, f"{nad}: {number} interfaces of the pod would have MAC {key[1]}"
        )


def _refuse_crowds(drafts: Sequence[InterfaceDraft]) -> None:
    interfaces = Counter(draft.network.uuid for draft in drafts)
    networks: dict[str, VirtualNetwork] = {draft.network.uuid: draft.network for draft in drafts}
    for uuid, number in interfaces.items():
        for family in families(networks[uuid]):
            if number > (free := room(networks[uuid], family=family, enough=number)):
                message = f"network {networks[uuid].name} has room for {free} IPv{family} interfaces, not for {number}"
                raise PodRefusedError(Reason.ADDRESSES_EXHAUSTED, message)
