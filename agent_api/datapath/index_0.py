"""Networks of index 0: finds those that the node must not connect. Pure.

The node has one route to an address of index 0, whatever its network. So the networks must have different addresses:

- the cluster pod network, and those of isolated namespaces, in which addresses are unique together,
- any other network only in the subnets that the operator allows, and only if it overlaps no other one on the node. Of
  two that overlap, the one that has ports keeps them, otherwise the one with the lower VNI is connected.
"""

import ipaddress
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from agent_api.datapath.refusals import (
    NetworkName,
    RefusalReason,
    index_0_subnet,
    name_of,
    without_gateway,
    without_vni,
)
from contrail_config.objects import PodNetwork, Refusal, VirtualMachine, VirtualMachineInterface

Subnet = ipaddress.IPv4Network | ipaddress.IPv6Network
IsPlugged = Callable[[VirtualMachine, VirtualMachineInterface], bool]
"""Returns whether an interface is plugged."""


class _Network(NamedTuple):
    """A network of index 0 on this node."""

    name: NetworkName
    kind: PodNetwork | None
    subnets: frozenset[Subnet]
    is_plugged: bool


def refused_index_0(
    virtual_machines: Iterable[VirtualMachine], is_plugged: IsPlugged, allowed: Sequence[str]
) -> dict[str, Refusal]:
    """Returns the refusals of networks of index 0 by uuid; `allowed` are the CIDRs for networks of tenants."""
    networks = _networks(virtual_machines, is_plugged)
    within = [ipaddress.ip_network(each) for each in allowed]
    taken: list[tuple[_Network, Subnet]] = []
    refused = {}
    for uuid, network in sorted(networks.items(), key=lambda item: _precedence(item[1])):
        problem = None if network.kind is PodNetwork.CLUSTER else _problem(network, taken, within)
        if problem is not None:
            refused[uuid] = problem
        else:
            taken += [(network, subnet) for subnet in network.subnets]
    return refused


def isolated_network(interface: VirtualMachineInterface) -> int:
    """Returns the number of the network from which an interface of index 0 reaches no other; 0 is the cluster's."""
    return 0 if interface.pod_network is PodNetwork.CLUSTER else interface.vni


def interface_problem(interface: VirtualMachineInterface) -> Refusal | None:
    """Returns why an interface of index 0 is not connected, whatever else is on the node."""
    if interface.pod_network is not PodNetwork.CLUSTER and not interface.vni:
        return without_vni(name_of(interface))
    if not any(address.subnet_gateway for address in interface.addresses):
        return without_gateway(name_of(interface))
    return None


def subnets_of(interface: VirtualMachineInterface) -> frozenset[Subnet]:
    """Returns the subnets of an interface's addresses."""
    return frozenset(
        ipaddress.ip_network((each.address, each.prefix_length), strict=False) for each in interface.addresses
    )


def _networks(virtual_machines: Iterable[VirtualMachine], is_plugged: IsPlugged) -> Mapping[str, _Network]:
    found: dict[str, _Network] = {}
    for virtual_machine in virtual_machines:
        for interface in virtual_machine.interfaces[:1]:
            before = found.get(interface.network_uuid)
            plugged = is_plugged(virtual_machine, interface) or (before is not None and before.is_plugged)
            subnets = subnets_of(interface) if before is None else before.subnets | subnets_of(interface)
            found[interface.network_uuid] = _Network(name_of(interface), interface.pod_network, subnets, plugged)
    return found


def _precedence(network: _Network) -> tuple[bool, bool, int]:
    return network.kind is None, not network.is_plugged, network.name.vni


def _problem(network: _Network, taken: Sequence[tuple[_Network, Subnet]], allowed: Sequence[Subnet]) -> Refusal | None:
    if not network.name.vni:
        return without_vni(network.name)
    if network.kind is PodNetwork.NAMESPACE:
        return None
    for subnet in sorted(network.subnets, key=str):
        if not any(_contains(each, subnet) for each in allowed):
            why = "is not in the agent's fabric-subnets"
            return index_0_subnet(network.name, str(subnet), RefusalReason.NOT_ALLOWED, why)
        for owner, other in taken:
            if _overlap(subnet, other):
                why = f"overlaps {other} of network {owner.name.text}"
                return index_0_subnet(network.name, str(subnet), RefusalReason.NETWORK_ROUTE, why)
    return None


def _contains(outer: Subnet, inner: Subnet) -> bool:
    if isinstance(outer, ipaddress.IPv4Network):
        return isinstance(inner, ipaddress.IPv4Network) and inner.subnet_of(outer)
    return isinstance(inner, ipaddress.IPv6Network) and inner.subnet_of(outer)


def _overlap(one: Subnet, other: Subnet) -> bool:
    if isinstance(one, ipaddress.IPv4Network):
        return isinstance(other, ipaddress.IPv4Network) and one.overlaps(other)
    return isinstance(other, ipaddress.IPv6Network) and one.overlaps(other)
