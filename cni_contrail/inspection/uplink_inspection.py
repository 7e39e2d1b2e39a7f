"""Inspects uplinks: what lets packets of a network leave it, in the network's namespace and on the node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cni_contrail.datapath import uplink_rules
from cni_contrail.datapath.desired import UPLINK, Network
from cni_contrail.datapath.fabric_routes import fabric_routes
from cni_contrail.datapath.missing_modules import open_filters
from cni_contrail.datapath.nftables_tables import read_table
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.datapath.uplink_rules import node_link
from cni_contrail.datapath.uplink_state import EndState, NodeLinks, read_network_end, read_node
from cni_contrail.inspection.difference import MISSING, WRONG, Difference, missing, stale
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import InNetns

FILTER = "filter of uplinks"
_EVERYTHING = "0.0.0.0/0"


class NodeUplinks(NamedTuple):
    """The node's ends of uplinks, the subnets that have a route by VNI, and what is wrong with the node's rules."""

    node: NodeLinks
    granted: dict[int, tuple[str, ...]]
    differences: list[Difference]


def read_uplinks(networks: Sequence[Network], fabric_subnets: Sequence[str]) -> NodeUplinks:
    """Reads what uplinks have in the node's namespace, in which the calling thread is. Raises LinkError."""
    with RouteSocket() as kernel, open_filters() as filters:
        node, table = read_node(kernel), read_table(filters, uplink_rules.TABLE)
    existing = {(vni, route.destination) for vni, end in node.ends.items() for route in end.routes}
    granted = fabric_routes(networks, existing, node.others, fabric_subnets).granted
    is_used = any(network.snat or network.vni in granted for network in networks)
    differences = []
    is_whole = table is not None and table.is_whole(uplink_rules.NODE_CHAINS, uplink_rules.node_rules())
    if is_used and not is_whole:
        differences.append(Difference(INDEX_0, WRONG, FILTER, "missing, or its rules were changed"))
    if not is_used and not node.ends and table is not None:
        differences += stale(INDEX_0, [FILTER])
    return NodeUplinks(node, granted, differences)


def inspect_uplink(netns: int, network: Network, uplinks: NodeUplinks) -> list[Difference]:
    """Returns what is wrong with the uplink of the network in the namespace `netns`. Raises LinkError."""
    subnets = uplinks.granted.get(network.vni, ())
    if not network.snat and not subnets:
        return []
    with InNetns(netns):
        kernel, filters = RouteSocket(), open_filters()
    with kernel, filters:
        inner, table = read_network_end(kernel), read_table(filters, uplink_rules.TABLE)
    outer = uplinks.node.ends.get(network.vni)
    wanted = uplink_rules.network_rules(snat=network.snat, subnets=subnets, between_pods=network.routes_between_pods)
    found = list(_end_differences(network, inner, UPLINK)) + list(
        _end_differences(network, outer, node_link(network.vni))
    )
    if table is None or not table.is_whole(uplink_rules.NETWORK_CHAINS, wanted):
        found.append(Difference(network.vni, WRONG, "filter of the uplink", "missing, or its rules were changed"))
    if not found and inner is not None and outer is not None:
        found += _route_differences(network, inner, outer, subnets)
    return found


def _end_differences(network: Network, end: EndState | None, name: str) -> Iterator[Difference]:
    if end is None or end.link.name != name:
        yield Difference(network.vni, MISSING, f"uplink {name}")
    elif not end.link.is_up or end.link.mtu != network.mtu:
        state = "down" if not end.link.is_up else f"MTU {end.link.mtu}, not {network.mtu}"
        yield Difference(network.vni, WRONG, f"uplink {name}", state)


def _route_differences(
    network: Network, inner: EndState, outer: EndState, subnets: Sequence[str]
) -> Iterator[Difference]:
    if _EVERYTHING not in {route.destination for route in inner.routes}:
        yield Difference(network.vni, MISSING, f"route to {_EVERYTHING} by {UPLINK}")
    routed = {route.destination for route in outer.routes}
    yield from missing(network.vni, (f"route to {each} by {outer.link.name}" for each in set(subnets) - routed))
    yield from stale(network.vni, (f"route to {each} by {outer.link.name}" for each in routed - set(subnets)))
