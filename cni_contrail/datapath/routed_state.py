"""State of the node's routed ports in the kernel: links, addresses, neighbours, routes and filter.

The filter is read first: a port of the filter whose link is not found later was deleted, and is not one that an ADD has
just created.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection

from cni_contrail.datapath import nftables_messages as nft
from cni_contrail.datapath import routed_messages as messages
from cni_contrail.datapath import routed_rules
from cni_contrail.datapath.desired import Masquerade
from cni_contrail.datapath.filter_rules import Drops
from cni_contrail.datapath.nftables_socket import NftablesSocket
from cni_contrail.datapath.nftables_tables import TableState, read_table
from cni_contrail.datapath.routed_entries import LinkAddress, RoutedEntries
from cni_contrail.datapath.tunnel_names import ROUTED_PREFIX
from cni_contrail.link import links
from cni_contrail.link.addresses import AddressInfo, dump_addresses, parse_address
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkInfo, LinkRef
from cni_contrail.link.named_tuple import NamedTuple

_ENOENT = 2
_ALIAS = "contrail "  # the beginning of the alias of every host end


class FilterState(NamedTuple):
    """The table of `routed_rules`, None if there is none, and its elements by set.

    `generation` is that of nf_tables, read before the rest. `dropped` is the number of packets with a spoofed source
    since the table was made, `dropped_by_port` the same by index of the link.
    """

    generation: int
    table: TableState | None
    elements: dict[str, frozenset[bytes]]
    dropped: int
    dropped_by_port: dict[int, int]

    def is_whole(self, masquerade: Masquerade | None) -> bool:
        """Returns whether there is the table as this version makes it, with any elements."""
        chains, rules = routed_rules.chains(masquerade), routed_rules.rules(masquerade)
        return self.table is not None and self.table.is_whole(chains, rules)


class RoutedState(NamedTuple):
    """What was found.

    `indexes` and `links` have every link by name. `host_ends` are those that the plugin created, `tunnels` lead to
    other nodes. `taken` are addresses with routes of other programs.
    """

    filter: FilterState
    indexes: dict[str, int]
    host_ends: frozenset[str]
    tunnels: frozenset[str]
    entries: RoutedEntries
    taken: frozenset[str]
    links: dict[str, LinkInfo]

    def drops(self) -> Drops:
        """Returns what the filter has dropped."""
        names = {index: name for name, index in self.indexes.items()}
        found = self.filter.dropped_by_port
        by_port = {names[index]: packets for index, packets in found.items() if packets and index in names}
        return Drops(self.filter.dropped, 0, ports=by_port)

    def gone(self) -> frozenset[int]:
        """Returns indexes of links that no longer exist, and of which the filter has counted packets."""
        return frozenset(self.filter.dropped_by_port).difference(self.indexes.values())

    def port(self, link: str) -> LinkRef:
        """Returns a link of the entries; one that was deleted is named by its index."""
        return LinkRef(link, int(link[1:]) if link.startswith("#") else self.indexes[link])


def read_routed(kernel: RouteSocket, filters: NftablesSocket, wanted: Collection[str]) -> RoutedState:
    """Reads the state of the namespace of both sockets; `wanted` are links of desired ports. Raises KernelError."""
    filter_state = read_filter(filters)
    bodies = [(links.parse_link(body), body) for body in kernel.dump(links.dump())]
    indexes = {link.name: link.ifindex for link, _ in bodies}
    names = {index: name for name, index in indexes.items()}
    ports, sources = _filter_entries(filter_state, names)
    host_ends = frozenset(link.name for link, _ in bodies if is_host_end(link))
    ours = ports & host_ends | {name for name in wanted if name in indexes}
    own_names = {indexes[name]: name for name in ours}
    tunnels = frozenset(name for name in indexes if name.startswith(ROUTED_PREFIX))
    routes, taken = _read_routes(kernel, own_names | {indexes[name]: name for name in tunnels})
    entries = RoutedEntries(
        ports=ports,
        sources=sources,
        settings={link.name: messages.parse_settings(body) for link, body in bodies if link.name in ours},
        gateways=_read_gateways(kernel, own_names),
        neighbours=_read_neighbours(kernel, own_names),
        routes=routes,
        networks=_networks(filter_state),
    )
    found = {link.name: link for link, _ in bodies}
    return RoutedState(filter_state, indexes, host_ends, tunnels, entries, taken, found)


def is_host_end(link: LinkInfo) -> bool:
    """Returns whether a link is one that the plugin creates: another may have got the index of a deleted one."""
    return link.kind == "veth" and link.alias.startswith(_ALIAS)


def read_filter(filters: NftablesSocket) -> FilterState:
    """Reads the table; raises KernelError."""
    generation = filters.generation()
    try:
        table = read_table(filters, routed_rules.TABLE)
        # Ports last: ADD adds a port before its sources, so that no source is found whose port is unknown.
        elements = {name: _read_set(filters, name) for name in reversed(list(routed_rules.SETS))}
        counted = filters.dump(nft.dump_elements(routed_rules.TABLE, routed_rules.COUNTED))
    except KernelError as error:
        if error.errno != _ENOENT:
            raise
        return FilterState(generation, table=None, elements={}, dropped=0, dropped_by_port={})
    rules = () if table is None else table.rules
    dropped = sum(rule.packets for rule in rules if rule.comment.startswith(routed_rules.SPOOFED))
    by_port = nft.counts_by_index(counted)
    return FilterState(generation, table, elements=elements, dropped=dropped, dropped_by_port=by_port)


def _read_set(filters: NftablesSocket, name: str) -> frozenset[bytes]:
    bodies = filters.dump(nft.dump_elements(routed_rules.TABLE, name))
    return frozenset(key for body in bodies for key in nft.parse_elements(body))


def _filter_entries(state: FilterState, names: dict[int, str]) -> tuple[frozenset[str], frozenset[LinkAddress]]:
    def link_of(key: bytes) -> str:
        (index,) = struct.unpack_from("=I", key)
        return names.get(index, f"#{index}")

    keys = [
        key for name in (routed_rules.IPV4, routed_rules.IPV6) for key in state.elements.get(name, frozenset[bytes]())
    ]
    ports = state.elements.get(routed_rules.PORTS, frozenset[bytes]())
    return (
        frozenset(link_of(key) for key in ports),
        frozenset(LinkAddress(link_of(key), _text(key[4:])) for key in keys),
    )


def _networks(state: FilterState) -> frozenset[int]:
    pairs = (struct.unpack("=II", key) for key in state.elements.get(routed_rules.NETWORKS, ()))
    return frozenset(first for first, second in pairs if first == second)


def _read_gateways(kernel: RouteSocket, names: dict[int, str]) -> frozenset[LinkAddress]:
    found = [parse_address(body) for body in kernel.dump(dump_addresses())]
    return frozenset(
        LinkAddress(names[each.ifindex], _text(each.local))
        for each in found
        if each.ifindex in names and _is_host_address(each)
    )


def _read_neighbours(kernel: RouteSocket, names: dict[int, str]) -> dict[LinkAddress, str]:
    found = [messages.parse_neighbour(body) for body in kernel.dump(messages.dump_neighbours())]
    return {
        LinkAddress(names[each.ifindex], each.address): each.mac
        for each in found
        if each is not None and each.ifindex in names
    }


def _read_routes(kernel: RouteSocket, names: dict[int, str]) -> tuple[dict[str, str], frozenset[str]]:
    """Returns our routes, and the addresses whose routes of other programs take precedence."""
    found = [messages.parse_host_route(body) for body in kernel.dump(messages.dump_routes())]
    routes = [each for each in found if each is not None]
    ours = {each.address: names[each.ifindex] for each in routes if each.is_ours and each.ifindex in names}
    return ours, frozenset(each.address for each in routes if messages.takes_precedence(each))


def _is_host_address(address: AddressInfo) -> bool:
    return address.prefix_length == 8 * len(address.local)


def _text(address: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET6 if len(address) == 16 else socket.AF_INET, address)
