"""Requests that bring index 0 on other nodes from the state that was found to the desired one; they are not sent here.

They carry out a plan of `block_entries`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cni_contrail.datapath import block_routes, routed_messages, tunnel_messages
from cni_contrail.datapath.block_entries import UNREACHABLE, BlockPlan
from cni_contrail.datapath.block_routes import NextHop
from cni_contrail.datapath.block_state import BlockState
from cni_contrail.link.addresses import remove_address
from cni_contrail.link.links import LinkRef
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.plan import Address


def block_requests(state: BlockState, difference: BlockPlan) -> Iterator[NetlinkRequest]:
    """Requests to change addresses, entries and routes. Routes come when the rest is there, and go before it."""
    refs = {name: info.ref for name, info in state.tunnels.items()}
    for link, address in sorted(difference.add_addresses):
        yield routed_messages.add_gateway(refs[link], address)
    for (link, mac), node in difference.set_destinations.items():
        yield tunnel_messages.set_destination(mac, refs[link], node, bridged=False)
    for (link, address), mac in difference.set_neighbours.items():
        yield routed_messages.set_neighbour(refs[link], address, mac)
    yield from _way_requests(state, difference, refs)
    for link, address in sorted(difference.remove_neighbours):
        yield routed_messages.remove_neighbour(refs[link], address)
    for link, mac in sorted(difference.remove_destinations):
        yield tunnel_messages.remove_destination(mac, refs[link])
    for link, address in sorted(difference.remove_addresses):
        yield remove_address(refs[link], Address(address, 128 if ":" in address else 32))


def _way_requests(state: BlockState, difference: BlockPlan, refs: Mapping[str, LinkRef]) -> Iterator[NetlinkRequest]:
    for cidr, way in difference.set_ways.items():
        replaces = cidr in state.entries.ways
        if way == UNREACHABLE:
            yield block_routes.add_unreachable(cidr, replaces=replaces)
        else:
            to_node = block_routes.set_route if replaces else block_routes.add_route
            yield to_node(refs[way.link], cidr, NextHop(way.gateway, way.source))
    for cidr, way in difference.remove_ways.items():
        yield block_routes.remove_route(cidr, 0 if way == UNREACHABLE else refs[way.link].ifindex)
