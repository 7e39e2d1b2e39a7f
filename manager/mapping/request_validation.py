"""Validates requests for addresses, MACs and capacity that can never be satisfied; the store decides about the rest."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from contrail_config.objects import VirtualNetwork
from manager.mapping.errors import PodRefusedError
from manager.mapping.interface_spec import InterfaceSpec
from manager.mapping.network_addressing import address_problem, capacity, families
from manager.mapping.unsatisfiable import conflicting, unsatisfiable
from manager.reasons import Reason
from manager.source import Pod


def validate_requests(pod: Pod, specs: Sequence[InterfaceSpec]) -> None:
    """Raises an error for an address or MAC that can never be allocated, or if a network's capacity is too small.

    The error is PodWaitsError if recreated networks of the same names could satisfy the request, else PodRefusedError.
    """
    _check_addresses(pod, specs)
    _check_duplicate_macs(specs, pod=pod)
    _check_capacity(specs)


def _check_addresses(pod: Pod, specs: Sequence[InterfaceSpec]) -> None:
    requested: dict[tuple[str, str], InterfaceSpec] = {}
    for spec in specs:
        for address in spec.requested_addresses:
            message = f"{spec.nad}: address {address} cannot be allocated"
            if problem := address_problem(spec.network, address):
                raise unsatisfiable(Reason.ADDRESS_UNAVAILABLE, f"{message}: {problem}", spec, pod=pod)
            other = requested.setdefault((spec.network.uuid, address), spec)
            if other is not spec:
                message = f"{message}: two interfaces of the pod request it"
                raise conflicting(Reason.ADDRESS_UNAVAILABLE, message, [other, spec], pod=pod)


def _check_duplicate_macs(specs: Sequence[InterfaceSpec], *, pod: Pod) -> None:
    by_mac = defaultdict[tuple[str, str], list[InterfaceSpec]](list)
    for spec in specs:
        if spec.mac is not None:  # one that equals a derived MAC of the pod is no conflict: another one is derived
            by_mac[spec.network.uuid, spec.mac].append(spec)
    if not by_mac:
        return
    (_, mac), sharing = max(by_mac.items(), key=_count)
    if len(sharing) > 1:
        message = f"{sharing[0].nad}: {len(sharing)} interfaces of the pod request the MAC address {mac}"
        raise conflicting(Reason.MAC_ADDRESS_TAKEN, message, sharing, pod=pod)


def _count(by_mac: tuple[tuple[str, str], list[InterfaceSpec]]) -> int:
    return len(by_mac[1])


def _check_capacity(specs: Sequence[InterfaceSpec]) -> None:
    """Rejects rather than waits for a larger network: a pod that can never be served would block the address queue."""
    interfaces = Counter(spec.network.uuid for spec in specs)
    networks: dict[str, VirtualNetwork] = {spec.network.uuid: spec.network for spec in specs}
    for uuid, number in interfaces.items():
        for family in families(networks[uuid]):
            if number > (free := capacity(networks[uuid], family=family, limit=number)):
                name = networks[uuid].name
                message = f"network {name} has capacity for {free} IPv{family} interfaces, not for {number}"
                raise PodRefusedError(Reason.ADDRESSES_EXHAUSTED, message)
