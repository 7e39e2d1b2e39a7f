"""rtnetlink requests about routes to blocks of addresses: those of other nodes, and this node's own.

A block of another node has that node as its gateway, on the link: the gateway's address is of no subnet, and may be an
IPv6 address for an IPv4 block. A block of this node is unreachable except for pods' addresses, which have routes of
their own; without that, packets for an address that no pod has would follow the default route.

Ours are the routes of the table `main` with our protocol number. Sources: rtnetlink(7), linux/rtnetlink.h.
"""

from __future__ import annotations

import socket
import struct

from cni_contrail.datapath.routed_messages import ROUTE_PROTOCOL
from cni_contrail.link.addresses import packed
from cni_contrail.link.links import LinkRef
from cni_contrail.link.message import (
    CREATE,
    EXCLUSIVE,
    NetlinkRequest,
    attribute,
    attributes,
    number,
    unpack_number,
)
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.routes import MAIN_TABLE, UNICAST, packed_destination

_RTM_NEWROUTE, _RTM_DELROUTE = 24, 25
_REPLACE = 0x100  # NLM_F_REPLACE
_ROUTE = struct.Struct("=BBBBBBBBI")  # struct rtmsg: family, lengths, TOS, table, protocol, scope, type, flags
_VIA = struct.Struct("=H")  # struct rtvia: family; then the address
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_PREFERRED_SOURCE, _RTA_TABLE, _RTA_VIA = 1, 4, 5, 6, 7, 15, 18
_UNIVERSE, _LINK_SCOPE, _ANY_SCOPE = 0, 253, 255
_UNREACHABLE = 7  # RTN_UNREACHABLE
_ONLINK = 4  # RTNH_F_ONLINK
_METRIC: dict[int, int] = {socket.AF_INET: 0, socket.AF_INET6: 1024}


class NextHop(NamedTuple):
    """Where packets for a block go; the node itself sends with the address `source`, if there is one.

    Without a gateway, which is an empty text, what they are for is on the link.
    """

    gateway: str
    source: str | None = None


class BlockRoute(NamedTuple):
    """A route of ours. One without a next hop is that of a pod of this node, on the link, or `is_unreachable`."""

    cidr: str
    ifindex: int
    hop: NextHop | None
    is_unreachable: bool


def add_route(link: LinkRef, cidr: str, hop: NextHop) -> NetlinkRequest:
    """Requests a route to a block; EEXIST if there is one of this metric, whoever added it."""
    return _new(link, cidr, hop, CREATE | EXCLUSIVE)


def set_route(link: LinkRef, cidr: str, hop: NextHop) -> NetlinkRequest:
    """Requests a route to a block in place of the one of this metric."""
    return _new(link, cidr, hop, CREATE | _REPLACE)


def add_unreachable(cidr: str, *, replaces: bool) -> NetlinkRequest:
    """Requests that a block is unreachable, in place of a route of ours if it `replaces` one; otherwise EEXIST."""
    body = _header(cidr, _UNREACHABLE, _UNIVERSE, 0) + _destination(cidr)
    flags = CREATE | (_REPLACE if replaces else EXCLUSIVE)
    return NetlinkRequest(_RTM_NEWROUTE, flags, body, f"make {cidr} unreachable")


def remove_route(cidr: str, ifindex: int = 0) -> NetlinkRequest:
    """Requests to remove our route to a block by a link, or with 0 the one by which it is unreachable."""
    body = _header(cidr, UNICAST if ifindex else _UNREACHABLE, _ANY_SCOPE, 0) + _destination(cidr)
    body += number(_RTA_OIF, ifindex) if ifindex else b""
    return NetlinkRequest(_RTM_DELROUTE, 0, body, f"remove route to {cidr}")


def parse_route(body: bytes) -> BlockRoute | None:
    """Parses an answer to `routes.dump_routes`; returns None for routes of others."""
    family, length, _, _, _, protocol, _, kind, _ = _ROUTE.unpack_from(body)
    if protocol != ROUTE_PROTOCOL or family not in _METRIC:
        return None
    found = attributes(body[_ROUTE.size :])
    if _RTA_DST not in found or unpack_number(found[_RTA_TABLE]) != MAIN_TABLE:
        return None
    cidr = f"{_text(found[_RTA_DST])}/{length}"
    if kind == _UNREACHABLE:
        return BlockRoute(cidr, 0, None, is_unreachable=True)
    if kind != UNICAST or _RTA_OIF not in found:
        return None
    ifindex = unpack_number(found[_RTA_OIF])
    gateway = found[_RTA_VIA][_VIA.size :] if _RTA_VIA in found else found.get(_RTA_GATEWAY)
    if gateway is None:
        return BlockRoute(cidr, ifindex, None, is_unreachable=False)
    source = found.get(_RTA_PREFERRED_SOURCE)
    hop = NextHop(_text(gateway), None if source is None else _text(source))
    return BlockRoute(cidr, ifindex, hop, is_unreachable=False)


def _new(link: LinkRef, cidr: str, hop: NextHop, flags: int) -> NetlinkRequest:
    family, _, _ = packed_destination(cidr)
    if hop.gateway:
        gateway_family, gateway = packed(hop.gateway)
        body = _header(cidr, UNICAST, _UNIVERSE, _ONLINK if gateway_family == socket.AF_INET else 0)
        is_same = gateway_family == family
        via = _VIA.pack(gateway_family) + gateway
        body += attribute(_RTA_GATEWAY, gateway) if is_same else attribute(_RTA_VIA, via)
    else:
        body = _header(cidr, UNICAST, _LINK_SCOPE if family == socket.AF_INET else _UNIVERSE, 0)
    body += _destination(cidr) + number(_RTA_OIF, link.ifindex)
    if hop.source is not None:
        body += attribute(_RTA_PREFERRED_SOURCE, packed(hop.source)[1])
    return NetlinkRequest(_RTM_NEWROUTE, flags, body, f"{link.name}: add route to {cidr}")


def _header(cidr: str, kind: int, scope: int, flags: int) -> bytes:
    family, _, length = packed_destination(cidr)
    return _ROUTE.pack(family, length, 0, 0, MAIN_TABLE, ROUTE_PROTOCOL, scope, kind, flags)


def _destination(cidr: str) -> bytes:
    family, network, _ = packed_destination(cidr)
    metric = _METRIC[family]
    return attribute(_RTA_DST, network) + (number(_RTA_PRIORITY, metric) if metric else b"")


def _text(address: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET6 if len(address) == 16 else socket.AF_INET, address)
