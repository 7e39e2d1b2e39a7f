"""Messages about links: make a veth pair, set its ends, find, announce and delete it.

Sources: rtnetlink(7), linux/if_link.h, linux/veth.h.
"""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Mapping

from cni_contrail.link.message import (
    CREATE,
    DUMP,
    EXCLUSIVE,
    Request,
    attribute,
    attributes,
    nested,
    number,
    unpack_number,
)
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import InterfacePlan

_RTM_NEWLINK = 16
_RTM_DELLINK = 17
_RTM_GETLINK = 18
_RTM_SETLINK = 19

_INFO = struct.Struct("=BxHiII")  # struct ifinfomsg: family, type, index, flags, which flags to change
_UP = 0x1  # IFF_UP

_IFLA_ADDRESS = 1
_IFLA_IFNAME = 3
_IFLA_MTU = 4
_IFLA_LINKINFO = 18
_IFLA_IFALIAS = 20
_IFLA_AF_SPEC = 26
_IFLA_GROUP = 27
_IFLA_NET_NS_FD = 28
_IFLA_EXT_MASK = 29
_IFLA_NUM_TX_QUEUES = 31
_IFLA_NUM_RX_QUEUES = 32
_IFLA_INFO_KIND = 1
_IFLA_INFO_DATA = 2
_VETH_INFO_PEER = 1
_IFLA_INET_CONF = 1
_ARP_NOTIFY = 22  # IPV4_DEVCONF_ARP_NOTIFY
_IFLA_INET6_ADDR_GEN_MODE = 8
_NO_ADDRESS = b"\1"  # IN6_ADDR_GEN_MODE_NONE
_SKIP_STATISTICS = 8  # RTEXT_FILTER_SKIP_STATS: they are most of the answer
_INET, _INET6 = 2, 10

_MAC_BYTES = 6
_NO_INDEX = _INFO.pack(0, 0, 0, 0, 0)
_ONE_QUEUE_EACH_WAY = number(_IFLA_NUM_TX_QUEUES, 1) + number(_IFLA_NUM_RX_QUEUES, 1)
_VETH = attribute(_IFLA_INFO_KIND, b"veth")
_ANNOUNCING = nested(_IFLA_AF_SPEC, nested(_INET, nested(_IFLA_INET_CONF, number(_ARP_NOTIFY, 1))))
_WITHOUT_IPV6_ADDRESS = nested(_IFLA_AF_SPEC, nested(_INET6, attribute(_IFLA_INET6_ADDR_GEN_MODE, _NO_ADDRESS)))


class End(NamedTuple):
    """A link in the namespace of the socket that is spoken to."""

    name: str
    ifindex: int


class Found(NamedTuple):
    """What the kernel says of a link that was asked for; `alias` is empty if it has none."""

    ifindex: int
    name: str
    alias: str
    group: int


def create_pair(plan: InterfacePlan, netns_fd: int) -> Request:
    """Asks for the veth pair of the plan, final from the start: the host end here, the other in `netns_fd`.

    Names, MACs and MTU are in the one message, so that nobody (udev, which renames links and changes MACs that the
    kernel chose) sees anything else. Each end has one queue each way: the kernel would use no more either, but make as
    many as there are processors, which takes it as long as all the rest.
    """
    sizes = packed_mtu(plan.mtu) + _ONE_QUEUE_EACH_WAY
    inner = packed_name(plan.name) + attribute(_IFLA_ADDRESS, packed_mac(plan.mac)) + sizes
    peer = _NO_INDEX + inner + number(_IFLA_NET_NS_FD, netns_fd)
    pair = nested(_IFLA_LINKINFO, _VETH, nested(_IFLA_INFO_DATA, nested(_VETH_INFO_PEER, peer)))
    host = packed_name(plan.host_name) + attribute(_IFLA_ADDRESS, _any_mac()) + sizes
    body = _NO_INDEX + host + pair
    what = f"{plan.name}: make the link with MAC {plan.mac} and MTU {plan.mtu}"
    return Request(_RTM_NEWLINK, CREATE | EXCLUSIVE, body, what)


def set_host_end(plan: InterfacePlan, *, ipv6: bool) -> Request:
    """Asks for the host end to be up and to bear its alias; `ipv6`: the link has IPv6 settings.

    It then makes no IPv6 address of its own. With a link-local one the node would send neighbour and router
    solicitations into the pod's network, and the pod would reach services of the node over it, past the datapath. IPv6
    itself stays enabled: a datapath on the node may give it addresses. A node that forwards IPv6 still tells once that
    it listens to the group of all routers.
    """
    quiet = _WITHOUT_IPV6_ADDRESS if ipv6 else b""
    body = _INFO.pack(0, 0, 0, _UP, _UP) + packed_name(plan.host_name) + packed_alias(plan.alias) + quiet
    return Request(_RTM_SETLINK, 0, body, f"{plan.name}: set host link {plan.host_name} up")


def set_sandbox_end(end: End) -> Request:
    """Asks for a sandbox end to be up, and for the kernel to announce its IPv4 addresses when its MAC is set."""
    body = _INFO.pack(0, 0, end.ifindex, _UP, _UP) + _ANNOUNCING
    return Request(_RTM_SETLINK, 0, body, f"{end.name}: set up")


def set_mac(plan: InterfacePlan) -> Request:
    """Asks for a sandbox end to have the MAC of its plan."""
    body = _NO_INDEX + packed_name(plan.name) + attribute(_IFLA_ADDRESS, packed_mac(plan.mac))
    return Request(_RTM_SETLINK, 0, body, f"{plan.name}: announce")


def get(name: str) -> Request:
    """Asks for the link of this name; the answer is for `found`."""
    body = _NO_INDEX + packed_name(name) + number(_IFLA_EXT_MASK, _SKIP_STATISTICS)
    return Request(_RTM_GETLINK, 0, body, f"find link {name}")


def dump() -> Request:
    """Asks for all links; the answers are for `found`."""
    body = _NO_INDEX + number(_IFLA_EXT_MASK, _SKIP_STATISTICS)
    return Request(_RTM_GETLINK, DUMP, body, "read links")


def found(body: bytes) -> Found:
    """Reads an answer to `get` or `dump`."""
    index = _INFO.unpack_from(body)[2]
    said = attributes(body[_INFO.size :])
    return Found(index, _text(said, _IFLA_IFNAME), _text(said, _IFLA_IFALIAS), unpack_number(said[_IFLA_GROUP]))


def set_group(end: End, group: int) -> Request:
    """Asks for a link to be in a group of links."""
    body = _INFO.pack(0, 0, end.ifindex, 0, 0) + packed_group(group)
    return Request(_RTM_SETLINK, 0, body, f"group link {end.name}")


def delete_group(group: int) -> Request:
    """Asks for all links of a group to be deleted, whoever made them: one wait where each by itself would wait."""
    body = _NO_INDEX + packed_group(group)
    return Request(_RTM_DELLINK, 0, body, f"delete link group {group}")


def delete(end: End) -> Request:
    """Asks for a link to be deleted, by its index: a link that has taken the name meanwhile is safe."""
    return Request(_RTM_DELLINK, 0, _INFO.pack(0, 0, end.ifindex, 0, 0), f"delete link {end.name}")


def packed_group(group: int) -> bytes:
    """Returns the attribute of a group of links."""
    return number(_IFLA_GROUP, group)


@functools.lru_cache(maxsize=16)
def packed_mtu(mtu: int) -> bytes:
    """Returns the attribute of an MTU; ValueError if it is no number of bytes."""
    return number(_IFLA_MTU, mtu)


@functools.lru_cache(maxsize=64)  # names and addresses are checked before any is sent
def packed_mac(text: str) -> bytes:
    """Returns the bytes of a MAC address, `02:00:5e:10:00:01`; ValueError if it is none."""
    try:
        mac = bytes.fromhex(text.replace(":", ""))
    except ValueError:
        mac = b""
    if len(mac) != _MAC_BYTES or mac.hex(":") != text.lower():
        raise ValueError(f"{text!r} is no MAC address")
    return mac


@functools.lru_cache(maxsize=64)
def packed_name(name: str) -> bytes:
    """Returns the attribute of a link's name.

    Raises ValueError for what the kernel would take for something else than a name: a pattern ("eth%d", or nothing),
    an end of the text, or its words for the settings of all links.
    """
    if name in ("", "all", "default") or "%" in name or "\0" in name:
        raise ValueError(f"{name!r} is no name for a link")
    return attribute(_IFLA_IFNAME, name.encode() + b"\0")


def packed_alias(alias: str) -> bytes:
    """Returns the attribute of a link's alias."""
    return attribute(_IFLA_IFALIAS, alias.encode())


def _any_mac() -> bytes:
    """A locally administered MAC address."""
    return b"\2" + os.urandom(_MAC_BYTES - 1)


def _text(said: Mapping[int, bytes], kind: int) -> str:
    return said.get(kind, b"").rstrip(b"\0").decode(errors="replace")
