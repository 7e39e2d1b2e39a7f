"""rtnetlink requests about routes.

Sources: rtnetlink(7), linux/rtnetlink.h.

How a route is added:

- A gateway outside the subnets of its interface (an address with /32 or /128, a point-to-point link) is assumed to be
  on the link: RTNH_F_ONLINK. A host route to it would work too, but would also attract the traffic of other interfaces
  to that address. If an earlier route of the interface reaches it, the flag is left out: with it, the kernel looks up
  an IPv6 gateway in the main table, and rejects the route if another interface comes first there.
- Two interfaces may have the same route (one network joined twice, overlapping networks). Both are added, and the first
  takes precedence. IPv4: NLM_F_APPEND. IPv6 would merge two routes of the same metric into one multipath route and
  spread connections over both interfaces, so each interface gets a metric of its own: 1024 (the default of ip-route(8))
  plus its index.
- A default route has the metric that ip-route(8) uses, 0 for IPv4 and 1024 for IPv6, and is created exclusively.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Container, Iterator, Sequence

from cni_contrail.link.addresses import check_length, covers, packed, prefix_bits
from cni_contrail.link.links import LinkRef
from cni_contrail.link.message import (
    APPEND,
    CREATE,
    DUMP,
    EXCLUSIVE,
    NetlinkRequest,
    attribute,
    attributes,
    first_attributes,
    number,
    padded,
    unpack_number,
)
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address, DefaultRoute, Route

_RTM_NEWROUTE = 24
_RTM_DELROUTE = 25
_RTM_GETROUTE = 26

# struct rtmsg: family, destination length, source length, TOS, table, protocol, scope, type, flags
_DESTINATION_LENGTH = 1  # offset in _HEADER
_HEADER = struct.Struct("=BBBBBBBBI")
_HOP = struct.Struct("=HBBi")  # struct rtnexthop: length, flags, weight, link index
_VIA = struct.Struct("=H")  # struct rtvia: family; then the address

MAIN_TABLE = 254  # RT_TABLE_MAIN
_STATIC = 4  # RTPROT_STATIC
_UNIVERSE, _LINK, _ANY_SCOPE = 0, 253, 255  # RT_SCOPE_...; 255 (NOWHERE) matches every scope in a deletion
UNICAST = 1  # RTNUNICAST
_ONLINK = 4  # RTNH_F_ONLINK

_RTA_DST = 1
_RTA_OIF = 4
_RTA_GATEWAY = 5
_RTA_PRIORITY = 6
_RTA_MULTIPATH = 9
_RTA_TABLE = 15
_RTA_VIA = 18

_IPV6_METRIC = 1024
_ADDRESS_BYTES = {socket.AF_INET: 4, socket.AF_INET6: 16}


class _Hop(NamedTuple):
    """Next hop of a route: the link, and the gateway unless the destination is on-link."""

    ifindex: int
    gateway: str | None
    onlink: bool


class DefaultRouteEntry(NamedTuple):
    """A default route of the kernel's main table; a multipath route has one entry per hop."""

    family: int
    ifindex: int
    gateway: str | None
    metric: int
    onlink: bool


class RouteInfo(NamedTuple):
    """One hop of a route as the kernel reports it; `kind` is its RTN_ number, addresses are in network byte order."""

    family: int
    table: int
    kind: int
    network: bytes
    length: int
    ifindex: int
    gateway: bytes | None


def default_route_metric(family: int) -> int:
    """Returns the metric of the default routes that this plugin adds."""
    return _IPV6_METRIC if family == socket.AF_INET6 else 0


def packed_destination(destination: str) -> tuple[int, bytes, int]:
    """Returns family, bytes and prefix length of a network, `10.1.0.0/16`; raises ValueError if it is malformed."""
    network, _, length = destination.partition("/")
    family, packed_network = packed(network)
    if not length.isdecimal():
        raise ValueError(f"{destination!r} is not a network with a prefix length")
    check_length(int(length), packed_network)
    return family, packed_network, int(length)


def add_route(end: LinkRef, route: Route, addresses: tuple[Address, ...], table: int = MAIN_TABLE) -> NetlinkRequest:
    """Requests to add a route through the link, behind an equal one; `addresses` are those of the link."""
    return _add(end, _Hop(end.ifindex, route.gateway, _outside_subnets(route.gateway, addresses)), route, table)


def add_routes(
    end: LinkRef, routes: Sequence[Route], addresses: tuple[Address, ...], table: int = MAIN_TABLE
) -> Iterator[NetlinkRequest]:
    """Requests to add all routes in order, as `add_route` does."""
    direct = _DirectRoutes()
    for route in routes:
        onlink = _outside_subnets(route.gateway, addresses) and not direct.reach(route.gateway)
        yield _add(end, _Hop(end.ifindex, route.gateway, onlink), route, table)
        if route.gateway is None:
            direct.add(route)


class _DirectRoutes:
    """Destinations of routes without a gateway: prefixes as numbers, by family and length."""

    def __init__(self) -> None:
        self._prefixes: dict[tuple[int, int], set[int]] = {}

    def add(self, route: Route) -> None:
        family, network, length = packed_destination(route.destination)
        self._prefixes.setdefault((family, length), set()).add(prefix_bits(network, length))

    def reach(self, gateway: str | None) -> bool:
        if gateway is None:
            return False
        family, wanted = packed(gateway)
        return any(
            family == each and prefix_bits(wanted, length) in prefixes
            for (each, length), prefixes in self._prefixes.items()
        )


def _add(end: LinkRef, hop: _Hop, route: Route, table: int) -> NetlinkRequest:
    family, network, length = packed_destination(route.destination)
    metric = _IPV6_METRIC + end.ifindex if family == socket.AF_INET6 else 0
    body = _header(family, length, hop) + attribute(_RTA_DST, network) + _next_hop(family, hop, metric)
    what = f"{end.name}: add route {route.destination}" + (f" via {route.gateway}" if route.gateway else "")
    if table != MAIN_TABLE:
        body += number(_RTA_TABLE, table)  # takes precedence over the table of the header, which has 8 bits
        what += f" to table {table}"
    return NetlinkRequest(_RTM_NEWROUTE, CREATE | APPEND, body, what)


def add_default_route(end: LinkRef, default: DefaultRoute, addresses: tuple[Address, ...]) -> NetlinkRequest:
    """Requests to add a default route through the link; the kernel rejects it if one of its metric exists (EEXIST)."""
    family, _ = packed(default.gateway)
    hop = _Hop(end.ifindex, default.gateway, _outside_subnets(default.gateway, addresses))
    body = _header(family, 0, hop) + _next_hop(family, hop, default_route_metric(family))
    return NetlinkRequest(
        _RTM_NEWROUTE, CREATE | EXCLUSIVE, body, f"{end.name}: add default route via {default.gateway}"
    )


def restore_default_route(route: DefaultRouteEntry) -> NetlinkRequest:
    """Requests to add a default route that existed before.

    Several of one metric are restored in the given order: IPv4 one behind the other, IPv6 as one multipath route.
    """
    hop = _Hop(route.ifindex, route.gateway, route.onlink)
    body = _header(route.family, 0, hop) + _next_hop(route.family, hop, route.metric)
    return NetlinkRequest(
        _RTM_NEWROUTE, CREATE | APPEND, body, f"restore default route via {route.gateway or 'its link'}"
    )


def delete_default_route(route: DefaultRouteEntry) -> NetlinkRequest:
    """Requests to delete a default route."""
    hop = _Hop(route.ifindex, route.gateway, route.onlink)
    header = _HEADER.pack(route.family, 0, 0, 0, MAIN_TABLE, 0, _ANY_SCOPE, UNICAST, 0)
    what = f"delete default route via {route.gateway or 'its link'}"
    return NetlinkRequest(_RTM_DELROUTE, 0, header + _next_hop(route.family, hop, route.metric), what)


def dump_routes(family: int = socket.AF_UNSPEC) -> NetlinkRequest:
    """Requests all routes of a family, or of both; `parse_default_routes` reads the answers."""
    return NetlinkRequest(_RTM_GETROUTE, DUMP, _HEADER.pack(family, 0, 0, 0, 0, 0, 0, 0, 0), "read routes")


def parse_routes(body: bytes) -> Iterator[RouteInfo]:
    """Parses one answer to `dump_routes`: yields the hops of an IPv4 or IPv6 route of any table and kind."""
    family, length, _, _, table, _, _, kind, flags = _HEADER.unpack_from(body)
    if family not in _ADDRESS_BYTES:
        return
    found = attributes(body[_HEADER.size :])
    network = found.get(_RTA_DST) or bytes(_ADDRESS_BYTES[family])
    table = _number(found, _RTA_TABLE, table)
    for hop in _hops(found, flags):
        gateway = None if hop.gateway is None else packed(hop.gateway)[1]
        yield RouteInfo(family, table, kind, network, length, hop.ifindex, gateway)


def is_default(body: bytes) -> bool:
    """Returns whether an answer to `dump_routes` is about a default route, of any table and kind."""
    return body[_DESTINATION_LENGTH] == 0


def is_to(body: bytes, destinations: Container[tuple[int, bytes, int]]) -> bool:
    """Returns whether an answer to `dump_routes` is about one of these destinations (`packed_destination`).

    Default routes have none in the answer (`is_default`).
    """
    network = first_attributes(body, _HEADER.size, (_RTA_DST,), 1).get(_RTA_DST, b"")
    return (body[0], network, body[_DESTINATION_LENGTH]) in destinations


def parse_default_routes(body: bytes) -> Iterator[DefaultRouteEntry]:
    """Parses one answer to `dump_routes`: yields the hops if it is a unicast default route of the main table."""
    family, length, source_length, tos, table, _, _, kind, flags = _HEADER.unpack_from(body)
    if family not in _ADDRESS_BYTES or (length, source_length, tos, kind) != (0, 0, 0, UNICAST):
        return
    found = attributes(body[_HEADER.size :])
    if _number(found, _RTA_TABLE, table) != MAIN_TABLE:
        return
    metric = _number(found, _RTA_PRIORITY, 0)
    for hop in _hops(found, flags):
        yield DefaultRouteEntry(family, hop.ifindex, hop.gateway, metric, hop.onlink)


def _outside_subnets(gateway: str | None, addresses: tuple[Address, ...]) -> bool:
    """Returns whether a gateway is outside all subnets; fe80::/10 is a subnet of every link."""
    if gateway is None:
        return False
    family, wanted = packed(gateway)
    link_local = family == socket.AF_INET6 and wanted[0] == 0xFE and wanted[1] & 0xC0 == 0x80
    return not link_local and not any(covers(address, wanted) for address in addresses)


def _header(family: int, length: int, hop: _Hop) -> bytes:
    # As ip-route(8) does: only an IPv4 route without a gateway has link scope; IPv6 has no route scopes.
    scope = _LINK if hop.gateway is None and family == socket.AF_INET else _UNIVERSE
    flags = _ONLINK if hop.onlink else 0
    return _HEADER.pack(family, length, 0, 0, MAIN_TABLE, _STATIC, scope, UNICAST, flags)


def _next_hop(family: int, hop: _Hop, metric: int) -> bytes:
    encoded = number(_RTA_OIF, hop.ifindex)
    if metric:
        encoded += number(_RTA_PRIORITY, metric)
    if hop.gateway is None:
        return encoded
    gateway_family, gateway = packed(hop.gateway)
    if gateway_family == family:
        return encoded + attribute(_RTA_GATEWAY, gateway)
    return encoded + attribute(_RTA_VIA, _VIA.pack(gateway_family) + gateway)  # an IPv4 route with an IPv6 gateway


def _hops(found: dict[int, bytes], flags: int) -> Iterator[_Hop]:
    if _RTA_MULTIPATH not in found:
        yield _Hop(_number(found, _RTA_OIF, 0), _gateway(found), bool(flags & _ONLINK))
        return
    data = found[_RTA_MULTIPATH]
    position = 0
    while position + _HOP.size <= len(data):
        length, hop_flags, _, index = _HOP.unpack_from(data, position)
        inner = attributes(data[position + _HOP.size : position + length])
        yield _Hop(index, _gateway(inner), bool(hop_flags & _ONLINK))
        position += padded(max(length, _HOP.size))


def _gateway(found: dict[int, bytes]) -> str | None:
    if _RTA_GATEWAY in found:
        return _text(found[_RTA_GATEWAY])
    return _text(found[_RTA_VIA][_VIA.size :]) if _RTA_VIA in found else None


def _text(address: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET6 if len(address) == 16 else socket.AF_INET, address)


def _number(found: dict[int, bytes], kind: int, otherwise: int) -> int:
    return unpack_number(found[kind]) if kind in found else otherwise
