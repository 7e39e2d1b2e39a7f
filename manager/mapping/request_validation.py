"""Whether what a pod asks for can ever be: addresses, MACs, room. Whether it can be now, the store knows."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from contrail_config.objects import VirtualNetwork, interface_mac, interface_uuid
from manager.mapping.errors import PodRefusedError
from manager.mapping.interface_spec import InterfaceSpec
from manager.mapping.network_addressing import address_problem, capacity, families
from manager.mapping.unsatisfiable import conflicting, unsatisfiable
from manager.reasons import Reason
from manager.source import Pod


def validate_requests(pod: Pod, specs: Sequence[InterfaceSpec]) -> None:
    """Raises an error for an address or MAC that cannot be had, or more interfaces than a network has room.

    PodWaitsError if other networks under the same names could give it, else PodRefusedError.
    """
    _refuse_addresses(pod, specs)
    _refuse_equal_macs(pod, specs)
    _refuse_crowds(specs)


def _refuse_addresses(pod: Pod, specs: Sequence[InterfaceSpec]) -> None:
    asked: dict[tuple[str, str], InterfaceSpec] = {}
    for spec in specs:
        for wish in spec.requested_addresses:
            message = f"{spec.nad}: address {wish} cannot be given"
            if problem := address_problem(spec.network, wish):
                raise unsatisfiable(Reason.ADDRESS_UNAVAILABLE, f"{message}: {problem}", spec, pod=pod)
            other = asked.setdefault((spec.network.uuid, wish), spec)
            if other is not spec:
                message = f"{message}: two interfaces of the pod ask for it"
                raise conflicting(Reason.ADDRESS_UNAVAILABLE, message, [other, spec], pod=pod)


def _refuse_equal_macs(pod: Pod, specs: Sequence[InterfaceSpec]) -> None:
    if all(spec.mac is None for spec in specs):
        return
    bearers = defaultdict[tuple[str, str], list[InterfaceSpec]](list)
    for index, spec in enumerate(specs):
        mac = spec.mac or interface_mac(interface_uuid(pod.uid, index))
        bearers[spec.network.uuid, mac].append(spec)
    (_, mac), most = max(bearers.items(), key=_number)
    if len(most) > 1:
        message = f"{most[0].nad}: {len(most)} interfaces of the pod would have MAC {mac}"
        raise conflicting(Reason.MAC_ADDRESS_TAKEN, message, most, pod=pod)


def _number(bearers: tuple[tuple[str, str], list[InterfaceSpec]]) -> int:
    return len(bearers[1])


def _refuse_crowds(specs: Sequence[InterfaceSpec]) -> None:
    """Refused, though a larger network may be made: who waits for addresses stands in a line, and this holds it up."""
    interfaces = Counter(spec.network.uuid for spec in specs)
    networks: dict[str, VirtualNetwork] = {spec.network.uuid: spec.network for spec in specs}
    for uuid, number in interfaces.items():
        for family in families(networks[uuid]):
            if number > (free := capacity(networks[uuid], family=family, enough=number)):
                message = f"network {networks[uuid].name} has room for {free} IPv{family} interfaces, not for {number}"
                raise PodRefusedError(Reason.ADDRESSES_EXHAUSTED, message)
