"""rtnetlink requests about links: create a veth pair, configure its ends, find, announce and delete them.

Sources: rtnetlink(7), linux/if_link.h, linux/veth.h.
"""

from __future__ import annotations

import functools
import os
import struct
import sys
from collections.abc import Iterable, Mapping

from cni_contrail.link.message import (
    CREATE,
    DUMP,
    EXCLUSIVE,
    NetlinkRequest,
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

_INFO = struct.Struct("=BxHiII")  # struct ifinfomsg: family, type, index, flags, mask of the flags to change
_UP = 0x1  # IFF_UP

_IFLA_ADDRESS = 1
_IFLA_BROADCAST = 2
_IFLA_IFNAME = 3
_IFLA_MTU = 4
_IFLA_LINK = 5
_IFLA_OPERSTATE = 16
_IFLA_LINKINFO = 18
_IFLA_IFALIAS = 20
_IFLA_AF_SPEC = 26
_IFLA_GROUP = 27
_IFLA_NET_NS_FD = 28
_IFLA_EXT_MASK = 29
_IFLA_NUM_TX_QUEUES = 31
_IFLA_NUM_RX_QUEUES = 32
_IFLA_LINK_NETNSID = 37
_IFLA_INFO_KIND = 1
_IFLA_INFO_DATA = 2
_VETH_INFO_PEER = 1
_IFLA_INET_CONF = 1
_FORWARDING, _RP_FILTER, _ARP_ANNOUNCE, _ARP_IGNORE, _ARP_NOTIFY = 1, 8, 18, 19, 22  # IPV4_DEVCONF_...
_IFLA_INET6_CONF = 2
_IPV6_MTU = slice(8, 12)  # DEVCONF_MTU6, the third of 32-bit numbers
_IFLA_INET6_ADDR_GEN_MODE = 8
_NO_ADDRESS = b"\1"  # IN6_ADDR_GEN_MODE_NONE
_SKIP_STATISTICS = 8  # RTEXT_FILTER_SKIP_STATS: the statistics are most of the answer
_INET, _INET6 = 2, 10

_MAC_BYTES = 6
_OPERATIONAL = b"\x06"  # IF_OPER_UP
_BROADCAST = b"\xff" * _MAC_BYTES
_NO_INDEX = _INFO.pack(0, 0, 0, 0, 0)  # the link is identified by its name, or is new
_ONE_QUEUE_PER_DIRECTION = number(_IFLA_NUM_TX_QUEUES, 1) + number(_IFLA_NUM_RX_QUEUES, 1)
_VETH = attribute(_IFLA_INFO_KIND, b"veth")
_ANNOUNCING = nested(_IFLA_AF_SPEC, nested(_INET, nested(_IFLA_INET_CONF, number(_ARP_NOTIFY, 1))))
OWN_ADDRESSES_ONLY = {_ARP_IGNORE: 1, _ARP_ANNOUNCE: 2, _RP_FILTER: 2}
"""IPv4 settings of a sandbox end that shares a subnet (`set_sandbox_end`)."""

_ANNOUNCING_OWN = nested(
    _IFLA_AF_SPEC,
    nested(
        _INET,
        nested(_IFLA_INET_CONF, number(_ARP_NOTIFY, 1), *(number(*each) for each in OWN_ADDRESSES_ONLY.items())),
    ),
)
_WITHOUT_IPV4 = nested(
    _INET,
    nested(_IFLA_INET_CONF, number(_RP_FILTER, 1), number(_ARP_IGNORE, 8), number(_FORWARDING, 0)),
)
_WITHOUT_IPV6_ADDRESS = nested(_INET6, attribute(_IFLA_INET6_ADDR_GEN_MODE, _NO_ADDRESS))
_ISOLATED = nested(_IFLA_AF_SPEC, _WITHOUT_IPV4)
_ISOLATED_WITH_IPV6 = nested(_IFLA_AF_SPEC, _WITHOUT_IPV4, _WITHOUT_IPV6_ADDRESS)


class LinkRef(NamedTuple):
    """A link in the network namespace of the socket that the request goes to."""

    name: str
    ifindex: int


class LinkInfo(NamedTuple):
    """A link as the kernel reports it; `alias` and `kind` are empty if it has none.

    `peer_index` is 0 for a link without a peer, `peer_netns_id` -1 if the peer is in the same namespace.
    """

    ifindex: int
    name: str
    alias: str
    group: int
    is_up: bool
    kind: str
    mac: str
    mtu: int
    peer_index: int
    peer_netns_id: int


def identities_of(found: Mapping[str, LinkInfo], names: Iterable[str]) -> frozenset[tuple[int, str]]:
    """Returns index and alias of each of these links: another link may get the name of a deleted one."""
    return frozenset((found[name].ifindex, found[name].alias) for name in names)


def create_pair(plan: InterfacePlan, netns_fd: int, master: bytes = b"") -> NetlinkRequest:
    """Requests the veth pair of the plan, created in its final form: the host end here, the other end in `netns_fd`.

    One message sets names, MACs and MTU, so that no observer sees an intermediate state. (udev renames links, and
    changes MACs that the kernel chose.) Each end has one queue per direction: by default the kernel allocates one per
    processor, uses only one, and needs as long for that as for everything else. `master` is the attribute of the bridge
    that the host end becomes a port of (`bridge_port.packed_master`).
    """
    # Neither end is created up: its sysctls must be set first, and the kernel rejects IFF_UP for the peer (ENOTCONN).
    # A moved link waits for an RCU grace period (20 ms), so the peer is created in the sandbox right away.
    sizes = packed_mtu(plan.mtu) + _ONE_QUEUE_PER_DIRECTION
    inner = packed_name(plan.name) + attribute(_IFLA_ADDRESS, packed_mac(plan.mac)) + sizes
    peer = _NO_INDEX + inner + number(_IFLA_NET_NS_FD, netns_fd)
    pair = nested(_IFLA_LINKINFO, _VETH, nested(_IFLA_INFO_DATA, nested(_VETH_INFO_PEER, peer)))
    host = packed_name(plan.host_name) + attribute(_IFLA_ADDRESS, _random_mac()) + sizes + master
    body = _NO_INDEX + host + pair
    what = f"{plan.name}: create the link with MAC {plan.mac} and MTU {plan.mtu}"
    return NetlinkRequest(_RTM_NEWLINK, CREATE | EXCLUSIVE, body, what)


def set_host_end(plan: InterfacePlan, *, ipv6: bool) -> NetlinkRequest:
    """Requests the host end to be up, isolated, and to have its alias; `ipv6`: the link has IPv6 settings.

    Isolated: a pod cannot reach the node, or what the node forwards to, around the network that a datapath provides.
    rp_filter: the link has no address and no route, so no source address is valid on it, not even with 2 (loose).
    arp_ignore 8: no answer to ARP requests. forwarding off: no routing and no proxy ARP, whatever the node's default.
    IPv6 is disabled by a sysctl (`sysctls`), netlink has no attribute for it. With `ipv6` the kernel also generates no
    link-local address when somebody enables IPv6: the node would send solicitations into the pod's network.

    A datapath that takes the link on layer 2 is not affected; one that gives it addresses changes the settings.
    """
    isolated = _ISOLATED_WITH_IPV6 if ipv6 else _ISOLATED
    body = _INFO.pack(0, 0, 0, _UP, _UP) + packed_name(plan.host_name) + packed_alias(plan.alias) + isolated
    return NetlinkRequest(_RTM_SETLINK, 0, body, f"{plan.name}: set host link {plan.host_name} up")


def set_up(end: LinkRef) -> NetlinkRequest:
    """Requests a link to be up."""
    return NetlinkRequest(_RTM_SETLINK, 0, _INFO.pack(0, 0, end.ifindex, _UP, _UP), f"set link {end.name} up")


def isolate_host_end(plan: InterfacePlan) -> NetlinkRequest:
    """Requests the IPv4 settings of `set_host_end` and changes nothing else."""
    body = _NO_INDEX + packed_name(plan.host_name) + _ISOLATED
    return NetlinkRequest(_RTM_SETLINK, 0, body, f"{plan.name}: isolate host link {plan.host_name}")


def set_sandbox_end(end: LinkRef, *, shares_subnet: bool = False) -> NetlinkRequest:
    """Requests a sandbox end to be up, and the kernel to announce its IPv4 addresses on `set_broadcast_address`.

    `shares_subnet`: another interface of the sandbox is in the same subnet. This one then answers ARP requests for its
    own addresses only (arp_ignore 1), asks with its own as sender (arp_announce 2), and accepts packets whose reverse
    path is the other (rp_filter 2).
    """
    body = _INFO.pack(0, 0, end.ifindex, _UP, _UP) + (_ANNOUNCING_OWN if shares_subnet else _ANNOUNCING)
    return NetlinkRequest(_RTM_SETLINK, 0, body, f"{end.name}: set up")


def set_broadcast_address(plan: InterfacePlan) -> NetlinkRequest:
    """Requests the sandbox end to have the broadcast MAC that it has: the kernel then announces its addresses.

    The kernel reports it to its protocols as a change of the link's addresses, like a change of the MAC itself, which
    stays as a later plugin of the chain may have set it.
    """
    body = _NO_INDEX + packed_name(plan.name) + attribute(_IFLA_BROADCAST, _BROADCAST)
    return NetlinkRequest(_RTM_SETLINK, 0, body, f"{plan.name}: announce")


def get(name: str) -> NetlinkRequest:
    """Requests the link of this name; `parse_link` reads the answer."""
    body = _NO_INDEX + packed_name(name) + number(_IFLA_EXT_MASK, _SKIP_STATISTICS)
    return NetlinkRequest(_RTM_GETLINK, 0, body, f"find link {name}")


def dump() -> NetlinkRequest:
    """Requests all links; `parse_link` reads the answers."""
    body = _NO_INDEX + number(_IFLA_EXT_MASK, _SKIP_STATISTICS)
    return NetlinkRequest(_RTM_GETLINK, DUMP, body, "read links")


def parse_link(body: bytes) -> LinkInfo:
    """Parses an answer to `get` or `dump`."""
    _, _, index, flags, _ = _INFO.unpack_from(body)
    values = attributes(body[_INFO.size :])
    return LinkInfo(
        ifindex=index,
        name=_text(values, _IFLA_IFNAME),
        alias=_text(values, _IFLA_IFALIAS),
        group=unpack_number(values[_IFLA_GROUP]),
        is_up=bool(flags & _UP),
        kind=_text(attributes(values.get(_IFLA_LINKINFO, b"")), _IFLA_INFO_KIND),
        mac=values.get(_IFLA_ADDRESS, b"").hex(":"),
        mtu=unpack_number(values[_IFLA_MTU]),
        peer_index=unpack_number(values[_IFLA_LINK]) if _IFLA_LINK in values else 0,
        peer_netns_id=_signed(values[_IFLA_LINK_NETNSID]) if _IFLA_LINK_NETNSID in values else -1,
    )


def parse_mtu(body: bytes) -> int:
    """Returns from an answer to `get` or `dump`, or from a notification, the MTU in bytes."""
    return unpack_number(attributes(body[_INFO.size :])[_IFLA_MTU])


def packed_inet_settings(body: bytes) -> bytes:
    """Returns from an answer to `get` the IPv4 settings: an array of 32-bit numbers; empty if it has none."""
    specific = attributes(attributes(body[_INFO.size :]).get(_IFLA_AF_SPEC, b""))
    return attributes(specific.get(_INET, b"")).get(_IFLA_INET_CONF, b"")


def is_operational(body: bytes) -> bool:
    """Returns from an answer to `get` whether the operational state (RFC 2863) is up."""
    return attributes(body[_INFO.size :]).get(_IFLA_OPERSTATE) == _OPERATIONAL


def parse_ipv6_mtu(body: bytes) -> int | None:
    """Returns from an answer to `get` or `dump` the MTU of IPv6 packets, None if the link has no IPv6.

    It is below that of the link where a router has advertised less.
    """
    families = attributes(attributes(body[_INFO.size :]).get(_IFLA_AF_SPEC, b""))
    settings = attributes(families.get(_INET6, b"")).get(_IFLA_INET6_CONF, b"")
    return unpack_number(settings[_IPV6_MTU]) if len(settings) >= _IPV6_MTU.stop else None


def set_group(end: LinkRef, group: int) -> NetlinkRequest:
    """Requests to move a link to a link group."""
    body = _INFO.pack(0, 0, end.ifindex, 0, 0) + packed_group(group)
    return NetlinkRequest(_RTM_SETLINK, 0, body, f"group link {end.name}")


def delete_group(group: int) -> NetlinkRequest:
    """Requests to delete all links of a group, whoever created them, with one RCU wait for all instead of one each."""
    body = _NO_INDEX + packed_group(group)
    return NetlinkRequest(_RTM_DELLINK, 0, body, f"delete link group {group}")


def delete(end: LinkRef) -> NetlinkRequest:
    """Requests to delete a link by its index: a link that has taken over the name since is safe."""
    return NetlinkRequest(_RTM_DELLINK, 0, _INFO.pack(0, 0, end.ifindex, 0, 0), f"delete link {end.name}")


def packed_group(group: int) -> bytes:
    """Returns the attribute of a link group."""
    return number(_IFLA_GROUP, group)


@functools.lru_cache(maxsize=16)
def packed_mtu(mtu: int) -> bytes:
    """Returns the attribute of an MTU; raises ValueError if it is not an unsigned 32-bit number."""
    return number(_IFLA_MTU, mtu)


@functools.lru_cache(maxsize=64)  # each value is packed twice: by the check of the plan and for its message
def packed_mac(text: str) -> bytes:
    """Returns the bytes of a MAC address, `02:00:5e:10:00:01`; raises ValueError if it is malformed."""
    try:
        mac = bytes.fromhex(text.replace(":", ""))
    except ValueError:
        mac = b""
    if len(mac) != _MAC_BYTES or mac.hex(":") != text.lower():
        raise ValueError(f"{text!r} is not a MAC address")
    return mac


@functools.lru_cache(maxsize=64)
def packed_name(name: str) -> bytes:
    """Returns the attribute of a link's name.

    Raises ValueError for text that the kernel would not take as a name: a pattern ("eth%d", or empty), a NUL, which
    ends the name, or "all" and "default", whose sysctls apply to all links.
    """
    if name in ("", "all", "default") or "%" in name or "\0" in name:
        raise ValueError(f"{name!r} is not a link name")
    return attribute(_IFLA_IFNAME, name.encode() + b"\0")


def packed_alias(alias: str) -> bytes:
    """Returns the attribute of a link's alias."""
    return attribute(_IFLA_IFALIAS, alias.encode())


def _random_mac() -> bytes:
    """Returns a random locally administered MAC address: udev leaves a MAC alone that was given at creation."""
    return b"\2" + os.urandom(_MAC_BYTES - 1)


def _signed(value: bytes) -> int:
    return int.from_bytes(value, sys.byteorder, signed=True)


def _text(values: Mapping[int, bytes], kind: int) -> str:
    return values.get(kind, b"").rstrip(b"\0").decode(errors="replace")
