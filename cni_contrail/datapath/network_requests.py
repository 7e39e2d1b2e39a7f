"""Requests that bring a network from the state that was found to the desired one; they are not sent here.

About its bridge and ports, filter, and the tables of bridge and tunnels; the latter two carry out a `plan`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from cni_contrail.datapath import block_routes, bridge, filter_rules, tunnel_messages
from cni_contrail.datapath.block_routes import NextHop
from cni_contrail.datapath.bridge_ports import attach_port, set_port
from cni_contrail.datapath.desired import Network
from cni_contrail.datapath.entries import Behind, Source
from cni_contrail.datapath.fabric_routes import subnets
from cni_contrail.datapath.network_state import NetworkState, index_of
from cni_contrail.datapath.plan import Plan
from cni_contrail.datapath.policy_rules import rule_requests
from cni_contrail.datapath.shadowing_routes import remove_foreign, shadowing
from cni_contrail.link import links
from cni_contrail.link.addresses import add_address, remove_address
from cni_contrail.link.errors import LinkError
from cni_contrail.link.links import LinkRef
from cni_contrail.link.message import NetlinkRequest

_LOOPBACK = LinkRef("lo", 1)
_EVERYTHING = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))


def link_requests(state: NetworkState, network: Network) -> Iterator[NetlinkRequest]:
    """Requests to create or correct the bridge, and to attach the links of desired ports that are not its ports.

    Raises LinkError if another link has the bridge's index.
    """
    yield from _bridge_requests(state, network.mtu)
    for name in sorted({port.link for port in network.ports} & state.other_links):
        port = LinkRef(name, state.indexes[name])
        yield attach_port(port, state.bridge_link)
        yield set_port(port)


def _bridge_requests(state: NetworkState, mtu: int) -> Iterator[NetlinkRequest]:
    found = state.bridge
    if found is None:
        yield from _free_name(state)
        yield links.set_up(_LOOPBACK)
        yield bridge.create_bridge(state.bridge_link, mtu)
        yield bridge.set_bridge_mtu(state.bridge_link, mtu)
    elif not found.is_right(mtu):
        yield bridge.set_bridge(found.link, mtu)


def _free_name(state: NetworkState) -> Iterator[NetlinkRequest]:
    """Removes a link that has the name of the bridge: the namespace is the network's own."""
    for name, index in state.indexes.items():
        if name == state.bridge_link.name:
            yield links.delete(LinkRef(name, index))
        elif index == state.bridge_link.ifindex:
            raise LinkError(f"link {name} has index {index}, which is that of the bridge {state.bridge_link.name}")


def filter_requests(state: NetworkState, difference: Plan) -> Iterator[NetlinkRequest]:
    """Requests to change elements of the filter, or to replace one that is not whole; one transaction."""
    if state.has_filter:
        add, remove = difference.add_sources, difference.remove_sources
    else:
        yield from filter_rules.replace_filter()
        add, remove = difference.add_sources | (state.entries.sources - difference.remove_sources), frozenset[Source]()
    yield from filter_rules.change_elements(
        [filter_rules.element(each, index_of(each.link, state.indexes)) for each in sorted(add)],
        [filter_rules.element(each, index_of(each.link, state.indexes)) for each in sorted(remove)],
    )


def routing_requests(state: NetworkState, network: Network) -> Iterator[NetlinkRequest]:
    """Requests that remove policy rules, and routes that take precedence over what the network needs.

    The namespace is the network's own. Rules that the kernel had at first come back.
    """
    yield from rule_requests(state.rules)
    needed = [*subnets(network), *(ipaddress.ip_network(block.cidr) for block in network.blocks)]
    if network.snat or network.forwarding:
        needed += _EVERYTHING
    yield from map(remove_foreign, shadowing(state.foreign_routes, needed))


def table_requests(difference: Plan, state: NetworkState) -> Iterator[NetlinkRequest]:
    """Requests to change addresses of the bridge, forwarding entries, neighbours and routes."""
    refs = {name: LinkRef(name, index) for name, index in state.indexes.items()}
    bridge_link = state.bridge_link
    # The kernel has an IPv6 address only once on a link, whatever its prefix: an earlier one goes first.
    added = {gateway.address for gateway in difference.add_gateways if ":" in gateway.address}
    first = {gateway for gateway in difference.remove_gateways if gateway.address in added}
    for address in sorted(first):
        yield remove_address(bridge_link, address)
    for address in sorted(difference.add_gateways):
        yield add_address(bridge_link, address)
    yield from _forwarding_requests(difference, refs, bridge_link)
    for neighbour, mac in difference.set_neighbours.items():
        yield bridge.set_neighbour(bridge_link, neighbour, mac)
    yield from _route_requests(difference, state)
    for neighbour in sorted(difference.remove_neighbours):
        yield bridge.remove_neighbour(bridge_link, neighbour)
    for mac, link in difference.remove_forwarding.items():
        yield bridge.remove_forwarding(mac, refs[link])
    for link, mac in sorted(difference.remove_destinations):
        yield tunnel_messages.remove_destination(mac, refs[link])
    for address in sorted(difference.remove_gateways - first):
        yield remove_address(bridge_link, address)


def _forwarding_requests(
    difference: Plan, refs: Mapping[str, LinkRef], bridge_link: LinkRef
) -> Iterator[NetlinkRequest]:
    for (link, mac), node in difference.set_destinations.items():
        bridged = difference.set_forwarding.get(mac) == link  # one message for both tables
        yield tunnel_messages.set_destination(mac, refs[link], node, bridged=bridged)
    for mac, link in difference.set_forwarding.items():
        if link == bridge_link.name:
            yield bridge.set_gateway_forwarding(bridge_link)
        elif Behind(link, mac) not in difference.set_destinations:
            yield bridge.set_forwarding(mac, refs[link])


def _route_requests(difference: Plan, state: NetworkState) -> Iterator[NetlinkRequest]:
    for cidr, gateway in difference.set_routes.items():
        to_node = block_routes.set_route if cidr in state.entries.routes else block_routes.add_route
        yield to_node(state.bridge_link, cidr, NextHop(gateway))
    for cidr in sorted(difference.remove_routes):
        yield block_routes.remove_route(cidr, state.bridge_link.ifindex)
