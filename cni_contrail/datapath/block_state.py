"""State of index 0's tunnels in the node's namespace: links, addresses, entries, and our routes to blocks."""

from __future__ import annotations

import socket

from cni_contrail.datapath import bridge
from cni_contrail.datapath import routed_messages as routed
from cni_contrail.datapath.block_entries import UNREACHABLE, BlockEntries, Way
from cni_contrail.datapath.block_routes import parse_route
from cni_contrail.datapath.entries import Behind
from cni_contrail.datapath.routed_entries import LinkAddress
from cni_contrail.datapath.tunnel_messages import TunnelInfo, parse_tunnel
from cni_contrail.datapath.tunnel_names import ROUTED_PREFIX
from cni_contrail.link import links
from cni_contrail.link.addresses import dump_addresses, parse_address
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.routes import dump_routes


class BlockState(NamedTuple):
    """What was found. `hosts` are addresses (CIDRs) of this node's pods: they have routes of ours."""

    tunnels: dict[str, TunnelInfo]
    entries: BlockEntries
    hosts: frozenset[str]


def read_tunnels(kernel: RouteSocket) -> dict[str, TunnelInfo]:
    """Returns the tunnels by name; raises KernelError."""
    found = [parse_tunnel(body) for body in kernel.dump(links.dump())]
    return {each.tunnel.name: each for each in found if each is not None and each.tunnel.name.startswith(ROUTED_PREFIX)}


def read_blocks(kernel: RouteSocket) -> BlockState:
    """Reads the state of the socket's namespace; raises KernelError."""
    tunnels = read_tunnels(kernel)
    names = {info.ifindex: name for name, info in tunnels.items()}
    ways, hosts = _read_routes(kernel, names)
    addresses = [parse_address(body) for body in kernel.dump(dump_addresses())]
    entries = BlockEntries(
        addresses=frozenset(
            LinkAddress(names[each.ifindex], _text(each.local))
            for each in addresses
            if each.ifindex in names and each.prefix_length == 8 * len(each.local)
        ),
        destinations=_read_destinations(kernel, names),
        neighbours=_read_neighbours(kernel, names),
        ways=ways,
    )
    return BlockState(tunnels, entries, hosts)


def _read_destinations(kernel: RouteSocket, names: dict[int, str]) -> dict[Behind, str]:
    found = [bridge.parse_neighbour(body) for body in kernel.dump(bridge.dump_forwarding())] if names else []
    return {
        Behind(names[each.ifindex], each.mac): each.node
        for each in found
        if each is not None and each.node is not None and each.ifindex in names
    }


def _read_neighbours(kernel: RouteSocket, names: dict[int, str]) -> dict[LinkAddress, str]:
    found = [routed.parse_neighbour(body) for body in kernel.dump(routed.dump_neighbours())] if names else []
    return {
        LinkAddress(names[each.ifindex], each.address): each.mac
        for each in found
        if each is not None and each.ifindex in names
    }


def _read_routes(kernel: RouteSocket, names: dict[int, str]) -> tuple[dict[str, Way], frozenset[str]]:
    """Returns our ways by block, and the addresses of this node's pods."""
    ways, hosts = {}, set()
    for body in kernel.dump(dump_routes()):
        route = parse_route(body)
        if route is None:
            continue
        if route.ifindex in names and route.hop is not None:
            ways[route.cidr] = Way(names[route.ifindex], route.hop.gateway, route.hop.source)
        elif route.is_unreachable:
            ways[route.cidr] = UNREACHABLE
        elif route.hop is None:
            hosts.add(route.cidr)
    return ways, frozenset(hosts)


def _text(address: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET6 if len(address) == 16 else socket.AF_INET, address)
