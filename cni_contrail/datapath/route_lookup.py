"""Asks the kernel how it routes packets to an address, with all policy rules and tables of the namespace."""

from __future__ import annotations

import struct

from cni_contrail.link.addresses import packed
from cni_contrail.link.message import NetlinkRequest, attribute, attributes, unpack_number
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.routes import UNICAST

_RTM_GETROUTE = 26
_ROUTE = struct.Struct("=BBBBBBBBI")  # struct rtmsg: family, lengths, TOS, table, protocol, scope, type, flags
_RTA_DST, _RTA_OIF = 1, 4


class FoundRoute(NamedTuple):
    """How packets leave: by the link with this index, 0 if they do not."""

    ifindex: int
    attributes: dict[int, bytes]


def find_route(address: str, flags: int = 0) -> NetlinkRequest:
    """Requests the route to an address, `flags` being RTM_F_...; the answer is an error if there is none."""
    family, destination = packed(address)
    body = _ROUTE.pack(family, 8 * len(destination), 0, 0, 0, 0, 0, 0, flags) + attribute(_RTA_DST, destination)
    return NetlinkRequest(_RTM_GETROUTE, 0, body, f"find route to {address}")


def parse_found_route(body: bytes) -> FoundRoute:
    """Parses an answer to `find_route`."""
    _, _, _, _, _, _, _, kind, _ = _ROUTE.unpack_from(body)
    found = attributes(body[_ROUTE.size :])
    return FoundRoute(unpack_number(found[_RTA_OIF]) if kind == UNICAST and _RTA_OIF in found else 0, found)
