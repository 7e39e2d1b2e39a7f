"""Refusals: networks or interfaces that this node does not connect, and subnets without a route. Pure.

They are consequences of what tenants and operators have configured, not failures of the node: they do not make it
unready. They are shown with the datapath's status, counted, and reported to the cluster, where the manager writes an
event about the network.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from agent_api.datapath.report import RefusedRoute
from contrail_config.objects import FqName, Refusal, VirtualMachine, VirtualMachineInterface
from contrail_config.reserved_macs import reserved_for

FABRIC_SUBNETS = ("10.64.0.0/12",)
"""Default of the networks (CIDRs) in which subnets of tenants may get a route on the node: Contrail's default for its
`ip_fabric_subnets`."""

_MAX_NAMED = 3
"""Nodes in one message."""


class RefusalReason(StrEnum):
    """Why a network is not connected, or a subnet has no route."""

    NODE_ROUTE = "node-route"
    NETWORK_ROUTE = "network-route"
    RESERVED = "reserved"
    NOT_ALLOWED = "not-allowed"
    EQUAL_VNI = "equal-vni"
    NO_VNI = "no-vni"
    OTHER_VNI = "other-vni"
    NO_GATEWAY = "no-gateway"
    RESERVED_MAC = "reserved-mac"


class NetworkName(NamedTuple):
    """A network by VNI and name, as refusals name it."""

    vni: int
    fq_name: FqName

    @property
    def text(self) -> str:
        """The name as one string."""
        return ":".join(self.fq_name)


def name_of(interface: VirtualMachineInterface) -> NetworkName:
    """Returns the network of an interface."""
    return NetworkName(interface.vni, interface.network)


def without_vni(network: NetworkName) -> Refusal:
    """Returns the refusal of a network without a number, which has nothing to keep it apart from others."""
    message = f"network {network.text}: not connected: it has no VNI yet"
    return Refusal(network.fq_name, network.vni, RefusalReason.NO_VNI, message)


def without_gateway(network: NetworkName) -> Refusal:
    """Returns the refusal of a network of index 0 that has no gateway, through which the node routes."""
    message = f"network {network.text}: index 0 is not connected: its subnets have no gateway"
    return Refusal(network.fq_name, network.vni, RefusalReason.NO_GATEWAY, message)


def with_equal_vni(network: NetworkName, others: Sequence[str]) -> Refusal:
    """Returns the refusal of a network whose VNI other networks, by name, have too."""
    message = f"network {network.text}: not connected: VNI {network.vni} is also that of {', '.join(others)}"
    return Refusal(network.fq_name, network.vni, RefusalReason.EQUAL_VNI, message)


def with_other_vni(network: NetworkName, number: int) -> Refusal:
    """Returns the refusal of interfaces that do not have the network's number, so that other nodes would mix it up."""
    problem = f"pods with VNI {network.vni} are not connected: the network has VNI {number} now: recreate them"
    return Refusal(network.fq_name, network.vni, RefusalReason.OTHER_VNI, f"network {network.text}: {problem}")


def with_nodes_of_other_vni(network: NetworkName, nodes: Mapping[str, int]) -> Refusal:
    """Returns the refusal of other nodes, by name, that have the network with another number."""
    others = ", ".join(f"{node} (VNI {vni})" for node, vni in sorted(nodes.items())[:_MAX_NAMED])
    more = f" and {len(nodes) - _MAX_NAMED} more" if len(nodes) > _MAX_NAMED else ""
    problem = f"not connected with nodes that do not have it with VNI {network.vni}: {others}{more}"
    return Refusal(network.fq_name, network.vni, RefusalReason.OTHER_VNI, f"network {network.text}: {problem}")


def with_reserved_mac(interface: VirtualMachineInterface) -> Refusal | None:
    """Returns the refusal of an interface whose MAC gateways or nodes have in its network; None if it may have it."""
    owner = reserved_for(interface.mac)
    if owner is None:
        return None
    network = name_of(interface)
    reason = f"interface with MAC {interface.mac} is not connected: the MAC is reserved for {owner}"
    return Refusal(network.fq_name, network.vni, RefusalReason.RESERVED_MAC, f"network {network.text}: {reason}")


def with_reserved_macs(virtual_machines: Iterable[VirtualMachine]) -> dict[str, Refusal]:
    """Returns the refusal of one interface for each network that has such, by uuid; index 0 is routed by address."""
    return {
        interface.network_uuid: refusal
        for virtual_machine in virtual_machines
        for interface in virtual_machine.interfaces[1:]
        if (refusal := with_reserved_mac(interface))
    }


def index_0_subnet(network: NetworkName, subnet: str, reason: RefusalReason, why: str) -> Refusal:
    """Returns the refusal of a network of index 0 because of a subnet."""
    message = f"network {network.text}: index 0 is not connected: subnet {subnet} {why}"
    return Refusal(network.fq_name, network.vni, reason, message, subnet)


def reported_refusals(routes: Sequence[RefusedRoute], names: Mapping[int, FqName]) -> list[Refusal]:
    """Returns the refused routes of a report; one of a network that has left the node since is left out."""
    return [
        Refusal(names[route.vni], route.vni, route.reason, _route_message(route, names), route.subnet, connected=True)
        for route in routes
        if route.vni in names
    ]


def _route_message(route: RefusedRoute, names: Mapping[int, FqName]) -> str:
    name = ":".join(names[route.vni])
    return f"network {name}: ip_fabric_forwarding: no route to {route.subnet}: {_route_problem(route, names)}"


def _route_problem(route: RefusedRoute, names: Mapping[int, FqName]) -> str:
    match route.reason:
        case RefusalReason.NODE_ROUTE:
            return f"it overlaps the node's route to {route.overlaps}"
        case RefusalReason.NETWORK_ROUTE:
            other = ":".join(names[route.by]) if route.by in names else f"VNI {route.by}"
            return f"it overlaps {route.overlaps} of network {other}"
        case RefusalReason.RESERVED:
            return f"it overlaps {route.overlaps}, which is never routed"
        case RefusalReason.NOT_ALLOWED:
            return "it is not in the agent's fabric-subnets"
    return f"{route.reason} {route.overlaps}".rstrip()  # of a newer release
