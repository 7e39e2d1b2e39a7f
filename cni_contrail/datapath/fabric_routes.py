"""Which subnets of networks with `forwarding` get a route on the node: those that overlap nothing else. Pure.

Two networks may have the same addresses, and only one can have the route: the one that has it already, otherwise the
one with the lower number. Routes of the node take precedence over all of them. Link-local addresses and those of
uplinks are never routed, and no subnet that is not within those that the operator allows.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Sequence

from cni_contrail.datapath.desired import Network
from cni_contrail.datapath.uplink_addresses import IPV6_RANGE, AnyNetwork, overlap
from cni_contrail.link.named_tuple import NamedTuple

_NEVER_ROUTED: tuple[AnyNetwork, ...] = (
    ipaddress.ip_network("169.254.0.0/16"),
    ipaddress.ip_network("fe80::/10"),
    IPV6_RANGE,
)


NODE_ROUTE, NETWORK_ROUTE, RESERVED, NOT_ALLOWED = "node-route", "network-route", "reserved", "not-allowed"
"""Reasons of a refused route, as in the report to the agent."""


class RefusedRoute(NamedTuple):
    """A subnet (CIDR) of a network that gets no route, and the CIDR that it overlaps, `by` another network or not."""

    vni: int
    subnet: str
    reason: str
    overlaps: str = ""
    by: int = 0


class FabricRoutes(NamedTuple):
    """By number of the network: its subnets (CIDRs) that get a route; and those that get none."""

    granted: dict[int, tuple[str, ...]]
    refused: dict[int, tuple[RefusedRoute, ...]]


def fabric_routes(
    networks: Sequence[Network],
    existing: Collection[tuple[int, str]],
    others: Collection[AnyNetwork],
    allowed: Sequence[str],
) -> FabricRoutes:
    """Decides about all subnets.

    `existing` are subnets that have their route already, with the number of their network; `others` are destinations of
    the node's other routes; `allowed` are the CIDRs within which subnets may have a route.
    """
    within = [ipaddress.ip_network(each, strict=False) for each in allowed]
    candidates = [(network.vni, subnet) for network in networks if network.forwarding for subnet in subnets(network)]
    candidates.sort(key=lambda each: ((each[0], str(each[1])) not in existing, each[0]))
    taken: list[tuple[int, AnyNetwork]] = []
    routes = FabricRoutes({}, {})
    for vni, subnet in candidates:
        problem = _problem(vni, subnet, taken, others, within)
        if problem is not None:
            routes.refused[vni] = (*routes.refused.get(vni, ()), problem)
        else:
            taken.append((vni, subnet))
            routes.granted[vni] = tuple(sorted((*routes.granted.get(vni, ()), str(subnet))))
    return routes


def subnets(network: Network) -> list[AnyNetwork]:
    """Returns the subnets of a network that have a gateway, sorted."""
    found = {
        ipaddress.ip_network((gateway.address, gateway.prefix_length), strict=False) for gateway in network.gateways
    }
    return sorted(found, key=lambda subnet: (subnet.version, int(subnet.network_address), subnet.prefixlen))


def _problem(
    vni: int,
    subnet: AnyNetwork,
    taken: Sequence[tuple[int, AnyNetwork]],
    others: Collection[AnyNetwork],
    allowed: Sequence[AnyNetwork],
) -> RefusedRoute | None:
    for reserved in _NEVER_ROUTED:
        if overlap(subnet, reserved):
            return RefusedRoute(vni, str(subnet), RESERVED, str(reserved))
    if not any(overlap(subnet, each) and subnet.prefixlen >= each.prefixlen for each in allowed):
        return RefusedRoute(vni, str(subnet), NOT_ALLOWED)
    if overlapping := [other for other in others if overlap(subnet, other)]:
        # Of many, such as those of pods, the same one each time.
        named = min(overlapping, key=lambda other: (other.prefixlen, int(other.network_address)))
        return RefusedRoute(vni, str(subnet), NODE_ROUTE, str(named))
    for owner, other in taken:
        if owner != vni and overlap(subnet, other):
            return RefusedRoute(vni, str(subnet), NETWORK_ROUTE, str(other), owner)
    return None
