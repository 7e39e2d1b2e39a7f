"""Routes of other programs in a network's namespace that take precedence over what the network needs. Pure: no kernel.

The network needs routes to the subnets of its gateways and to blocks on other nodes, and with an uplink to everything.
A route that is within one of those, such as `blackhole 10.7.0.2`, keeps packets from pods. Others are left alone.

Ours are routes of our protocol number by the bridge or the uplink, and those that the kernel adds with addresses.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Collection

from cni_contrail.datapath.routed_messages import ROUTE_PROTOCOL
from cni_contrail.datapath.uplink_addresses import AnyNetwork, overlap
from cni_contrail.link.message import NetlinkRequest, attribute, attributes, number, unpack_number
from cni_contrail.link.named_tuple import NamedTuple

_RTM_DELROUTE = 25
_ROUTE = struct.Struct("=BBBBBBBBI")  # struct rtmsg: family, lengths, TOS, table, protocol, scope, type, flags
_RTA_DST, _RTA_OIF, _RTA_PRIORITY, _RTA_TABLE, _RTA_NH_ID = 1, 4, 6, 15, 30
_TABLES = (253, 254, 255)  # default, main, local: those with policy rules
_BY_KERNEL = 2  # RTPROT_KERNEL
_DROPPING = (6, 7, 8, 9)  # RTN_BLACKHOLE, UNREACHABLE, PROHIBIT, THROW
_BITS: dict[int, int] = {socket.AF_INET: 32, socket.AF_INET6: 128}
_METRICS = {4: 0, 6: 1024}  # of our routes


class ForeignRoute(NamedTuple):
    """A route of another program; `body` is that of the kernel's message."""

    destination: AnyNetwork
    metric: int
    body: bytes


def parse_foreign(body: bytes, ours: Collection[int]) -> ForeignRoute | None:
    """Parses an answer to `routes.dump_routes`; None for a route that is ours, `ours` being indexes of our links."""
    family, length, _, _, table, protocol, _, kind, _ = _ROUTE.unpack_from(body)
    if family not in _BITS or (protocol == _BY_KERNEL and kind not in _DROPPING):
        return None
    found = attributes(body[_ROUTE.size :])
    if _number(found, _RTA_TABLE, table) not in _TABLES:
        return None
    if protocol == ROUTE_PROTOCOL and kind not in _DROPPING and _number(found, _RTA_OIF, 0) in ours:
        return None
    address = found.get(_RTA_DST, bytes(_BITS[family] // 8))
    return ForeignRoute(ipaddress.ip_network((address, length)), _number(found, _RTA_PRIORITY, 0), body)


def shadowing(routes: Collection[ForeignRoute], needed: Collection[AnyNetwork]) -> list[ForeignRoute]:
    """Returns the routes that take precedence over those to what is needed."""
    return [route for route in routes if any(_takes_precedence(route, each) for each in needed)]


def remove_foreign(route: ForeignRoute) -> NetlinkRequest:
    """Requests to remove a route of another program."""
    family, length, source, tos, table, protocol, scope, kind, _ = _ROUTE.unpack_from(route.body)
    found = attributes(route.body[_ROUTE.size :])
    body = _ROUTE.pack(family, length, source, tos, table, protocol, scope, kind, 0)
    body += attribute(_RTA_DST, found[_RTA_DST]) if _RTA_DST in found else b""
    body += number(_RTA_PRIORITY, route.metric) if route.metric else b""
    body += _next_hop(found) if kind not in _DROPPING else b""
    return NetlinkRequest(_RTM_DELROUTE, 0, body, f"remove route to {route.destination} of another program")


def _next_hop(found: dict[int, bytes]) -> bytes:
    """What tells the route from others to the destination: a nexthop object, which also has a link, or a link."""
    kind = next((kind for kind in (_RTA_NH_ID, _RTA_OIF) if kind in found), None)
    return b"" if kind is None else number(kind, unpack_number(found[kind]))


def _takes_precedence(route: ForeignRoute, needed: AnyNetwork) -> bool:
    if not overlap(route.destination, needed) or route.destination.prefixlen < needed.prefixlen:
        return False
    is_more_specific = route.destination.prefixlen > needed.prefixlen
    return is_more_specific or route.metric <= _METRICS[needed.version]


def _number(found: dict[int, bytes], kind: int, otherwise: int) -> int:
    return unpack_number(found[kind]) if kind in found else otherwise
