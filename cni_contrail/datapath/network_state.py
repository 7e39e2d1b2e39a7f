"""State of one network in the kernel: bridge, ports, entries of its tables, filter."""

from __future__ import annotations

import socket
import struct

from cni_contrail.datapath import bridge, filter_rules, uplink_rules
from cni_contrail.datapath import nftables_messages as nft
from cni_contrail.datapath.block_routes import parse_route
from cni_contrail.datapath.bridge import BridgeInfo, parse_bridge
from cni_contrail.datapath.bridge_ports import parse_port
from cni_contrail.datapath.desired import UPLINK
from cni_contrail.datapath.entries import ON_LINK, Behind, Entries, Source
from cni_contrail.datapath.filter_rules import Drops
from cni_contrail.datapath.nftables_messages import Table
from cni_contrail.datapath.nftables_socket import NftablesSocket
from cni_contrail.datapath.nftables_tables import TableState, other_tables, read_table
from cni_contrail.datapath.policy_rules import dump_rules
from cni_contrail.datapath.shadowing_routes import ForeignRoute, parse_foreign
from cni_contrail.datapath.tunnel_messages import TunnelInfo, parse_tunnel
from cni_contrail.datapath.tunnel_names import BRIDGED
from cni_contrail.link import links
from cni_contrail.link.addresses import dump_addresses, parse_address
from cni_contrail.link.bridge_port import bridge_of
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkInfo, LinkRef
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address
from cni_contrail.link.routes import dump_routes

_ENOENT = 2
_OWN_TABLES = (filter_rules.TABLE, uplink_rules.TABLE)


class NetworkState(NamedTuple):
    """What was found. `bridge` is None if there is none.

    `ports` are the links that are up, and ports of the bridge with our settings, `other_links` those that are not
    (yet), both by name and without the `tunnels`. `blocked` are ports whose frames the bridge does not forward.
    `indexes` and `links` have every link by name. `other_tables` of nf_tables are those of other programs. `drops` are
    counted since the filter was made. `gone` are indexes of links that no longer exist, and of which the filter has
    counted packets. `rules` are all policy rules, `foreign_routes` those that neither the kernel nor this package has
    added.
    """

    bridge: BridgeInfo | None
    ports: frozenset[str]
    other_links: frozenset[str]
    blocked: frozenset[str]
    tunnels: dict[str, TunnelInfo]
    indexes: dict[str, int]
    entries: Entries
    has_filter: bool
    other_tables: tuple[Table, ...]
    drops: Drops
    gone: frozenset[int]
    links: dict[str, LinkInfo]
    rules: tuple[bytes, ...] = ()
    foreign_routes: tuple[ForeignRoute, ...] = ()

    @property
    def bridge_link(self) -> LinkRef:
        """The bridge, for requests; the one to create if there is none."""
        return bridge_of(self.indexes)


def read_network(kernel: RouteSocket, filters: NftablesSocket) -> NetworkState:
    """Reads the state of the namespace of both sockets; raises KernelError."""
    bodies = kernel.dump(links.dump())
    found = [(links.parse_link(body), parse_port(body)) for body in bodies]
    indexes = {link.name: link.ifindex for link, _ in found}
    names = {index: name for name, index in indexes.items()}
    bridge_link = bridge_of(indexes)
    index = bridge_link.ifindex
    tunnels = _read_tunnels(bodies) if indexes.keys() & set(BRIDGED) else {}
    attached = {link.name: port for link, port in found if port.master == index}
    ports = frozenset(link.name for link, port in found if link.name in attached and port.has_settings and link.is_up)
    forwarding, neighbours, destinations = _read_neighbours(kernel, names, index)
    table, sources, port_drops = _read_filter(filters, names)
    routes, foreign_routes = _read_routes(kernel, index, indexes.get(UPLINK, index))
    return NetworkState(
        bridge=_read_bridge(bodies, index) if bridge_link.name in indexes else None,
        ports=ports - tunnels.keys(),
        other_links=frozenset(indexes) - ports - {bridge_link.name, "lo", *tunnels},
        blocked=frozenset(name for name, port in attached.items() if port.is_blocked),
        tunnels=tunnels,
        indexes=indexes,
        entries=Entries(_read_gateways(kernel, index), forwarding, neighbours, sources, destinations, routes),
        has_filter=table is not None and filter_rules.is_complete(table),
        other_tables=tuple(other_tables(filters, _OWN_TABLES)),
        drops=filter_rules.drops_of(
            () if table is None else table.rules,
            {names[index]: packets for index, packets in port_drops.items() if packets and index in names},
        ),
        gone=frozenset(port_drops.keys() - names.keys()),
        links={link.name: link for link, _ in found},
        rules=tuple(kernel.dump(dump_rules())),
        foreign_routes=foreign_routes,
    )


def _read_bridge(bodies: list[bytes], index: int) -> BridgeInfo | None:
    found = (parse_bridge(body) for body in bodies)
    return next((each for each in found if each is not None and each.link.ifindex == index), None)


def _read_tunnels(bodies: list[bytes]) -> dict[str, TunnelInfo]:
    found = [parse_tunnel(body) for body in bodies]
    return {each.tunnel.name: each for each in found if each is not None and each.tunnel.name in BRIDGED}


def _read_routes(kernel: RouteSocket, bridge: int, uplink: int) -> tuple[dict[str, str], tuple[ForeignRoute, ...]]:
    """Returns gateways by destination of the bridge's routes, and routes by neither of the two links."""
    routes, foreign = {}, []
    for body in kernel.dump(dump_routes()):
        route = parse_route(body)
        if route is not None and route.ifindex == bridge:
            routes[route.cidr] = ON_LINK if route.hop is None else route.hop.gateway
        elif (other := parse_foreign(body, (bridge, uplink))) is not None:
            foreign.append(other)
    return routes, tuple(foreign)


def _read_gateways(kernel: RouteSocket, bridge: int) -> frozenset[Address]:
    found = [parse_address(body) for body in kernel.dump(dump_addresses())]
    return frozenset(
        Address(_text(each.local), each.prefix_length)
        for each in found
        if each.ifindex == bridge and not _is_link_local(each.local)
    )


def _read_neighbours(
    kernel: RouteSocket, names: dict[int, str], bridge_index: int
) -> tuple[dict[str, str], dict[str, str], dict[Behind, str]]:
    """Returns ports by MAC, MACs by address, and nodes by what is behind a tunnel."""
    forwarding, neighbours, destinations = {}, {}, {}
    for request in (bridge.dump_forwarding(), bridge.dump_neighbours()):
        for body in kernel.dump(request):
            entry = bridge.parse_neighbour(body, bridge_index)
            if entry is None or entry.ifindex not in names:  # its link was deleted since
                continue
            if entry.node is not None:
                destinations[Behind(names[entry.ifindex], entry.mac)] = entry.node
            elif entry.address is None:
                forwarding[entry.mac] = names[entry.ifindex]
            else:
                neighbours[entry.address] = entry.mac
    return forwarding, neighbours, destinations


def _read_filter(
    filters: NftablesSocket, names: dict[int, str]
) -> tuple[TableState | None, frozenset[Source], dict[int, int]]:
    """Returns the table, the elements and the drops by port of the filter; none if it is not there."""
    try:
        table = read_table(filters, filter_rules.TABLE)
        keys = [
            key
            for name in filter_rules.SETS
            for body in filters.dump(nft.dump_elements(filter_rules.TABLE, name))
            for key in nft.parse_elements(body)
        ]
        drops = nft.counts_by_index(filters.dump(nft.dump_elements(filter_rules.TABLE, filter_rules.SPOOFED)))
    except KernelError as error:
        if error.errno != _ENOENT:
            raise
        return None, frozenset(), {}
    return table, frozenset(_source(key, names) for key in keys), drops


def _source(key: bytes, names: dict[int, str]) -> Source:
    (index,) = struct.unpack_from("=I", key)
    return Source(names.get(index, f"#{index}"), key[4:10].hex(":"), _text(key[12:]))


def index_of(link: str, indexes: dict[str, int]) -> int:
    """Returns the index of a link of a `Source`; one that is gone is named by its index."""
    return int(link[1:]) if link.startswith("#") else indexes[link]


def _text(address: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET6 if len(address) == 16 else socket.AF_INET, address)


def _is_link_local(address: bytes) -> bool:
    return len(address) == 16 and address[0] == 0xFE and address[1] & 0xC0 == 0x80
