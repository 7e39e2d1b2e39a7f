"""What one notification of the kernel says, and which notifications are asked for: deletions and replacements.

What somebody adds is no drift, and neither is what the kernel learns: neighbours that it has asked for, MACs of other
bridges, routes of other programs. The filter drops those before they reach this process.

Of nf_tables only the end of each transaction is asked for. It names the program; what it has changed is in the tables.

Sources: rtnetlink(7), linux/rtnetlink.h, linux/neighbour.h, linux/if_bridge.h, linux/netfilter/nf_tables.h.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping

from cni_contrail.datapath.policy_rules import parse_default
from cni_contrail.datapath.routed_messages import ROUTE_PROTOCOL
from cni_contrail.drift.socket_filter import Accepted, byte_is, half_has, half_is
from cni_contrail.link.message import Message, attributes, unpack_number
from cni_contrail.link.named_tuple import NamedTuple

_NEWLINK, _DELLINK, _DELADDR = 16, 17, 21  # RTM_...
_NEWROUTE, _DELROUTE, _NEWNEIGH, _DELNEIGH, _DELNSID = 24, 25, 28, 29, 89
_NEWRULE, _DELRULE = 32, 33
_NEWGEN = 10 << 8 | 15  # NFNL_SUBSYS_NFTABLES, NFT_MSG_NEWGEN

_FLAGS_OFFSET, _BODY = 6, 16  # in a message
_REPLACE = 0x100  # NLM_F_REPLACE
_PERMANENT, _NOARP = 0x80, 0x40  # NUD_...
_AF_BRIDGE = 7
_UP = 0x1  # IFF_UP

_ATTRIBUTE = struct.Struct("=HH")  # length, type
_LINK = struct.Struct("=BxHiII")  # struct ifinfomsg: family, type, index, flags, change
_ADDRESS = struct.Struct("=BBBBi")  # struct ifaddrmsg
_NEIGHBOUR = struct.Struct("=BxxxiHBB")  # struct ndmsg
_ROUTE = struct.Struct("=BBBBBBBBI")  # struct rtmsg
_GENERIC_BYTES = 4  # struct rtgenmsg, padded; struct nfgenmsg
_IFLA_IFNAME = 3
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_NDA_DST, _NDA_LLADDR = 1, 2
_RTA_DST, _RTA_OIF = 1, 4
_NETNSA_NSID = 1
_GEN_ID, _GEN_PROCESS = 1, 3  # NFTA_GEN_ID, NFTA_GEN_PROC_NAME
_BITS: dict[int, int] = {socket.AF_INET: 32, socket.AF_INET6: 128}

LINK_GROUPS = (1, 3, 5, 8, 9, 19)
"""RTNLGRP_ LINK, NEIGH, IPV4_IFADDR, IPV4_RULE, IPV6_IFADDR, IPV6_RULE."""

LINK_MESSAGES = (
    Accepted(_NEWLINK),
    Accepted(_DELLINK),
    Accepted(_DELADDR),
    Accepted(_NEWNEIGH, (half_is(_BODY + 8, _PERMANENT, _NOARP),)),
    Accepted(_DELNEIGH),
    Accepted(_NEWRULE),
    Accepted(_DELRULE),
)

NODE_GROUPS = (7, 11, 28)
"""RTNLGRP_ IPV4_ROUTE, IPV6_ROUTE, NSID: of the node's own namespace alone.

Each notification of another namespace costs its sender a search among the IDs of all, and ADD causes many of routes.
"""

NODE_MESSAGES = (
    Accepted(_NEWROUTE, (half_has(_FLAGS_OFFSET, _REPLACE), byte_is(_BODY + 1, *_BITS.values()))),
    Accepted(_DELROUTE, (byte_is(_BODY + 5, ROUTE_PROTOCOL),)),
    Accepted(_DELNSID),
)

FILTER_GROUPS = (7,)
"""NFNLGRP_NFTABLES."""

FILTER_MESSAGES = (Accepted(_NEWGEN),)


class LinkSet(NamedTuple):
    """A link was changed; `body` is that of the message. `is_bridge_port`: only its settings as a port."""

    ifindex: int
    name: str
    is_up: bool
    is_bridge_port: bool
    body: bytes


class LinkGone(NamedTuple):
    """A link was deleted, or with `is_bridge_port` left its bridge."""

    ifindex: int
    name: str
    is_bridge_port: bool


class AddressGone(NamedTuple):
    """An address of the node or of a bridge was deleted."""

    ifindex: int
    address: str


class NeighbourChanged(NamedTuple):
    """A neighbour was deleted (`mac` is empty), or set by a program."""

    ifindex: int
    address: str
    mac: str


class ForwardingChanged(NamedTuple):
    """A forwarding entry of a bridge was deleted, or set by a program."""

    ifindex: int
    mac: str
    is_gone: bool


class RouteChanged(NamedTuple):
    """A route to one address or network was deleted (`length` tells which), or replaced."""

    ifindex: int
    destination: str
    length: int


class PolicyRuleChanged(NamedTuple):
    """A policy rule was added or deleted; `is_drift`: it was added by another program, or was there at first."""

    is_drift: bool


class FilterChanged(NamedTuple):
    """The rules of the namespace have this generation since the program changed them."""

    generation: int
    program: str


class NamespaceGone(NamedTuple):
    """The namespace that had this ID was deleted."""

    netns_id: int


KernelChange = (
    LinkSet
    | LinkGone
    | AddressGone
    | NeighbourChanged
    | ForwardingChanged
    | RouteChanged
    | PolicyRuleChanged
    | FilterChanged
    | NamespaceGone
)


def _link_set(body: bytes) -> LinkSet:
    family, _, index, flags, _ = _LINK.unpack_from(body)
    return LinkSet(index, _link_name(body), bool(flags & _UP), family == _AF_BRIDGE, body)


def _link_gone(body: bytes) -> LinkGone:
    family, _, index, _, _ = _LINK.unpack_from(body)
    return LinkGone(index, _link_name(body), family == _AF_BRIDGE)


def _link_name(body: bytes) -> str:
    # The kernel puts the name first. A message has 60 attributes, and an ADD causes a dozen messages.
    length, kind = _ATTRIBUTE.unpack_from(body, _LINK.size)
    first = _LINK.size + _ATTRIBUTE.size
    name = body[first : _LINK.size + length] if kind == _IFLA_IFNAME else attributes(body[_LINK.size :])[_IFLA_IFNAME]
    return name.rstrip(b"\0").decode(errors="replace")


def _address_gone(body: bytes) -> AddressGone | None:
    family, _, _, _, index = _ADDRESS.unpack_from(body)
    values = attributes(body[_ADDRESS.size :])
    local = values.get(_IFA_LOCAL) or values.get(_IFA_ADDRESS)
    return None if local is None or family not in _BITS else AddressGone(index, socket.inet_ntop(family, local))


def _neighbour_gone(body: bytes) -> NeighbourChanged | ForwardingChanged | None:
    match _neighbour_set(body):
        case ForwardingChanged(ifindex, mac):
            return ForwardingChanged(ifindex, mac, is_gone=True)
        case NeighbourChanged(ifindex, address):
            return NeighbourChanged(ifindex, address, "")
        case None:
            return None


def _neighbour_set(body: bytes) -> NeighbourChanged | ForwardingChanged | None:
    family, index, _, _, _ = _NEIGHBOUR.unpack_from(body)
    values = attributes(body[_NEIGHBOUR.size :])
    mac = values.get(_NDA_LLADDR, b"").hex(":")
    if family == _AF_BRIDGE:
        return ForwardingChanged(index, mac, is_gone=False)
    if family not in _BITS or _NDA_DST not in values:
        return None
    return NeighbourChanged(index, socket.inet_ntop(family, values[_NDA_DST]), mac)


def _route_changed(body: bytes) -> RouteChanged | None:
    family, length, _, _, _, _, _, _, _ = _ROUTE.unpack_from(body)
    if family not in _BITS:
        return None
    values = attributes(body[_ROUTE.size :])
    destination = socket.inet_ntop(family, values.get(_RTA_DST, bytes(_BITS[family] // 8)))
    return RouteChanged(unpack_number(values[_RTA_OIF]) if _RTA_OIF in values else 0, destination, length)


def _rule_added(body: bytes) -> PolicyRuleChanged:
    return PolicyRuleChanged(is_drift=parse_default(body) is None)


def _rule_deleted(body: bytes) -> PolicyRuleChanged:
    return PolicyRuleChanged(is_drift=parse_default(body) is not None)


def _filter_changed(body: bytes) -> FilterChanged:
    values = attributes(body[_GENERIC_BYTES:])
    program = values.get(_GEN_PROCESS, b"").rstrip(b"\0").decode(errors="replace")
    return FilterChanged(int.from_bytes(values[_GEN_ID], "big"), program)


def _namespace_gone(body: bytes) -> NamespaceGone:
    return NamespaceGone(unpack_number(attributes(body[_GENERIC_BYTES:])[_NETNSA_NSID]))


_PARSERS: Mapping[int, Callable[[bytes], KernelChange | None]] = {
    _NEWLINK: _link_set,
    _DELLINK: _link_gone,
    _DELADDR: _address_gone,
    _NEWNEIGH: _neighbour_set,
    _DELNEIGH: _neighbour_gone,
    _NEWROUTE: _route_changed,
    _DELROUTE: _route_changed,
    _NEWRULE: _rule_added,
    _DELRULE: _rule_deleted,
    _NEWGEN: _filter_changed,
    _DELNSID: _namespace_gone,
}


def parse_change(message: Message) -> KernelChange | None:
    """Parses a notification that the filter has passed; None for one that says nothing of our objects."""
    parse = _PARSERS.get(message.kind)
    return None if parse is None else parse(message.body)
