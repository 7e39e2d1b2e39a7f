"""rtnetlink requests about routed ports: settings and gateway addresses of the host end, neighbours and host routes.

Sources: rtnetlink(7), linux/if_link.h, linux/ip.h, linux/ipv6.h, linux/neighbour.h.
"""

from __future__ import annotations

import socket
import struct
import sys

from cni_contrail.datapath.desired import GATEWAY_MAC
from cni_contrail.link.addresses import packed
from cni_contrail.link.links import LinkRef, packed_mac
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

ROUTE_PROTOCOL = 67
"""RTPROT_ number of our routes, as `proto` in ip-route(8): tells them from those of others."""

_RTM_SETLINK = 19
_RTM_NEWADDR = 20
_RTM_NEWROUTE, _RTM_DELROUTE, _RTM_GETROUTE = 24, 25, 26
_RTM_NEWNEIGH, _RTM_DELNEIGH, _RTM_GETNEIGH = 28, 29, 30
_REPLACE = 0x100  # NLM_F_REPLACE

_LINK = struct.Struct("=BxHiII")  # struct ifinfomsg
_ADDRESS = struct.Struct("=BBBBi")  # struct ifaddrmsg: family, prefix length, flags, scope, link index
_NEIGHBOUR = struct.Struct("=BxxxiHBB")  # struct ndmsg: family, index, state, flags, type
_ROUTE = struct.Struct("=BBBBBBBBI")  # struct rtmsg: family, lengths, TOS, table, protocol, scope, type, flags
_UP = 0x1

_IFLA_ADDRESS, _IFLA_AF_SPEC, _IFLA_GROUP = 1, 26, 27
_IFLA_INET_CONF = 1
_IFLA_INET6_CONF, _IFLA_INET6_ADDR_GEN_MODE = 2, 8
_FORWARDING, _RP_FILTER, _ARP_FILTER, _ARP_IGNORE = 1, 8, 13, 19  # IPV4_DEVCONF_...
_ACCEPT_RA, _DISABLE_IPV6 = 3, 26  # DEVCONF_... of IPv6
_NO_ADDRESS = b"\1"  # IN6_ADDR_GEN_MODE_NONE
_IFA_LOCAL, _IFA_ADDRESS, _IFA_FLAGS = 2, 1, 8
_NO_DAD, _NO_PREFIX_ROUTE = 0x02, 0x200
_NDA_DST, _NDA_LLADDR = 1, 2
_NUD_PERMANENT = 0x80
_RTA_DST, _RTA_OIF, _RTA_PRIORITY, _RTA_TABLE = 1, 4, 6, 15
_MAIN, _LOCAL = 254, 255
_UNIVERSE, _ON_LINK, _ANY_SCOPE, _UNICAST = 0, 253, 255, 1
_METRIC: dict[int, int] = {socket.AF_INET: 0, socket.AF_INET6: 1024}
_BITS: dict[int, int] = {socket.AF_INET: 32, socket.AF_INET6: 128}


def _ipv4_settings(*, forwarding: int, arp_filter: int, arp_ignore: int) -> bytes:
    values = number(_FORWARDING, forwarding) + number(_RP_FILTER, 1)
    values += number(_ARP_FILTER, arp_filter) + number(_ARP_IGNORE, arp_ignore)
    return nested(socket.AF_INET, nested(_IFLA_INET_CONF, values))


_WITHOUT_IPV6_ADDRESS = nested(socket.AF_INET6, attribute(_IFLA_INET6_ADDR_GEN_MODE, _NO_ADDRESS))
_ROUTED_IPV4 = _ipv4_settings(forwarding=1, arp_filter=1, arp_ignore=1)
_ROUTED = nested(_IFLA_AF_SPEC, _ROUTED_IPV4)
_ROUTED_WITH_IPV6 = nested(_IFLA_AF_SPEC, _ROUTED_IPV4, _WITHOUT_IPV6_ADDRESS)
_ISOLATED = nested(_IFLA_AF_SPEC, _ipv4_settings(forwarding=0, arp_filter=0, arp_ignore=8))


class Settings(NamedTuple):
    """Settings of a host end that a routed port needs, or has; `ipv6` is whether the link has IPv6 at all.

    `group` is the link's group, by which the filter knows the port's network.
    """

    mac: str
    is_up: bool
    forwarding: int
    rp_filter: int
    arp_filter: int
    arp_ignore: int
    ipv6: bool
    accept_ra: int
    group: int = 0


class PermanentNeighbour(NamedTuple):
    """An entry that the kernel neither asks for nor collects."""

    ifindex: int
    address: str
    mac: str


class HostRoute(NamedTuple):
    """A route to one address, of the table `main` or `local`; `ifindex` is 0 for one without a link of its own."""

    address: str
    ifindex: int
    metric: int
    is_ours: bool


def desired_settings(*, ipv6: bool, group: int = 0) -> Settings:
    """Returns the settings of a routed port.

    rp_filter 1: only sources whose route is this link. arp_filter 1: the same for senders of ARP requests, also where
    the node has rp_filter 2 for all links, so that a pod cannot fill the node's table of neighbours. arp_ignore 1: an
    answer only for the link's own address, the gateway's, and not for other addresses of the node.
    """
    return Settings(
        mac=GATEWAY_MAC,
        is_up=True,
        forwarding=1,
        rp_filter=1,
        arp_filter=1,
        arp_ignore=1,
        ipv6=ipv6,
        accept_ra=0,
        group=group,
    )


def set_host_end(port: LinkRef, mac: str, *, ipv6: bool, group: int = 0) -> NetlinkRequest:
    """Requests the settings of `desired_settings` as far as netlink has attributes for them; `mac` is what it has.

    The MAC only if it differs: the kernel forgets all neighbours when it is set, even to the same value.
    """
    address = b"" if mac == GATEWAY_MAC else attribute(_IFLA_ADDRESS, packed_mac(GATEWAY_MAC))
    settings = _ROUTED_WITH_IPV6 if ipv6 else _ROUTED
    body = _LINK.pack(0, 0, port.ifindex, _UP, _UP) + address + number(_IFLA_GROUP, group) + settings
    return NetlinkRequest(_RTM_SETLINK, 0, body, f"set link {port.name}")


def isolate_host_end(port: LinkRef) -> NetlinkRequest:
    """Requests the IPv4 settings that the plugin gives a new host end: no forwarding, no answer to ARP requests."""
    body = _LINK.pack(0, 0, port.ifindex, 0, 0) + _ISOLATED
    return NetlinkRequest(_RTM_SETLINK, 0, body, f"isolate link {port.name}")


def parse_settings(body: bytes) -> Settings:
    """Parses an answer to `links.get` or `links.dump`."""
    _, _, _, flags, _ = _LINK.unpack_from(body)
    values = attributes(body[_LINK.size :])
    families = attributes(values.get(_IFLA_AF_SPEC, b""))
    conf = attributes(families.get(socket.AF_INET, b"")).get(_IFLA_INET_CONF, b"")
    conf6 = attributes(families.get(socket.AF_INET6, b"")).get(_IFLA_INET6_CONF, b"")
    return Settings(
        mac=values.get(_IFLA_ADDRESS, b"").hex(":"),
        is_up=bool(flags & _UP),
        # The array of IPv4 begins with number 1, that of IPv6 with number 0.
        forwarding=_entry(conf, _FORWARDING - 1),
        rp_filter=_entry(conf, _RP_FILTER - 1),
        arp_filter=_entry(conf, _ARP_FILTER - 1),
        arp_ignore=_entry(conf, _ARP_IGNORE - 1),
        ipv6=bool(conf6) and _entry(conf6, _DISABLE_IPV6) == 0,
        accept_ra=_entry(conf6, _ACCEPT_RA),
        group=unpack_number(values[_IFLA_GROUP]) if _IFLA_GROUP in values else 0,
    )


def add_gateway(port: LinkRef, address: str) -> NetlinkRequest:
    """Requests the gateway's address without a subnet; EEXIST if the link has it."""
    family, local = packed(address)
    flags = _NO_DAD | _NO_PREFIX_ROUTE if family == socket.AF_INET6 else 0
    body = _ADDRESS.pack(family, _BITS[family], flags & 0xFF, 0, port.ifindex)
    body += attribute(_IFA_LOCAL, local) + attribute(_IFA_ADDRESS, local) + number(_IFA_FLAGS, flags)
    return NetlinkRequest(_RTM_NEWADDR, CREATE | EXCLUSIVE, body, f"{port.name}: add gateway {address}")


def set_neighbour(port: LinkRef, address: str, mac: str) -> NetlinkRequest:
    """Requests a permanent neighbour."""
    family, local = packed(address)
    body = _NEIGHBOUR.pack(family, port.ifindex, _NUD_PERMANENT, 0, 0)
    body += attribute(_NDA_DST, local) + attribute(_NDA_LLADDR, packed_mac(mac))
    return NetlinkRequest(_RTM_NEWNEIGH, CREATE | _REPLACE, body, f"{port.name}: set neighbour {address}")


def remove_neighbour(port: LinkRef, address: str) -> NetlinkRequest:
    """Requests to remove a neighbour."""
    family, local = packed(address)
    body = _NEIGHBOUR.pack(family, port.ifindex, 0, 0, 0) + attribute(_NDA_DST, local)
    return NetlinkRequest(_RTM_DELNEIGH, 0, body, f"{port.name}: remove neighbour {address}")


def dump_neighbours() -> NetlinkRequest:
    """Requests all neighbours of both families; `parse_neighbour` reads the answers."""
    return NetlinkRequest(_RTM_GETNEIGH, DUMP, _NEIGHBOUR.pack(0, 0, 0, 0, 0), "read neighbours")


def parse_neighbour(body: bytes) -> PermanentNeighbour | None:
    """Parses one answer; returns None for what is not a permanent neighbour of IPv4 or IPv6."""
    family, index, state, _, _ = _NEIGHBOUR.unpack_from(body)
    if family not in _BITS or state != _NUD_PERMANENT:
        return None
    values = attributes(body[_NEIGHBOUR.size :])
    address = socket.inet_ntop(family, values[_NDA_DST])
    return PermanentNeighbour(index, address, values.get(_NDA_LLADDR, b"").hex(":"))


def add_route(port: LinkRef, address: str) -> NetlinkRequest:
    """Requests the route to a pod's address; EEXIST if there is one of this metric, whatever its link."""
    return _new_route(port, address, CREATE | EXCLUSIVE)


def move_route(port: LinkRef, address: str) -> NetlinkRequest:
    """Requests the route to a pod's address in place of the one of this metric."""
    return _new_route(port, address, CREATE | _REPLACE)


def remove_route(port: LinkRef, address: str) -> NetlinkRequest:
    """Requests to remove our route to an address by this link."""
    what = f"{port.name}: remove route to {address}"
    return NetlinkRequest(_RTM_DELROUTE, 0, _route(port, address, _ANY_SCOPE), what)


def dump_routes() -> NetlinkRequest:
    """Requests all routes of both families; `parse_host_route` reads the answers."""
    return NetlinkRequest(_RTM_GETROUTE, DUMP, _ROUTE.pack(0, 0, 0, 0, 0, 0, 0, 0, 0), "read routes")


def parse_host_route(body: bytes) -> HostRoute | None:
    """Parses one answer; returns None for a route that no pod's address depends on."""
    family, length, _, _, _, protocol, _, kind, _ = _ROUTE.unpack_from(body)
    if _BITS.get(family) != length:
        return None
    found = attributes(body[_ROUTE.size :])
    table = unpack_number(found[_RTA_TABLE])
    if table not in (_MAIN, _LOCAL):
        return None
    return HostRoute(
        address=socket.inet_ntop(family, found[_RTA_DST]),
        ifindex=unpack_number(found[_RTA_OIF]) if _RTA_OIF in found else 0,
        metric=unpack_number(found[_RTA_PRIORITY]) if _RTA_PRIORITY in found else 0,
        is_ours=(protocol, kind, table) == (ROUTE_PROTOCOL, _UNICAST, _MAIN),
    )


def takes_precedence(route: HostRoute) -> bool:
    """Returns whether a route of another program keeps ours from having effect, or from being added."""
    family, _ = packed(route.address)
    return not route.is_ours and route.metric <= _METRIC[family]


def _new_route(port: LinkRef, address: str, flags: int) -> NetlinkRequest:
    scope = _ON_LINK if packed(address)[0] == socket.AF_INET else _UNIVERSE
    return NetlinkRequest(_RTM_NEWROUTE, flags, _route(port, address, scope), f"{port.name}: add route to {address}")


def _route(port: LinkRef, address: str, scope: int) -> bytes:
    family, network = packed(address)
    header = _ROUTE.pack(family, _BITS[family], 0, 0, _MAIN, ROUTE_PROTOCOL, scope, _UNICAST, 0)
    body = header + attribute(_RTA_DST, network) + number(_RTA_OIF, port.ifindex)
    return body + number(_RTA_PRIORITY, _METRIC[family]) if _METRIC[family] else body


def _entry(values: bytes, position: int) -> int:
    data = values[4 * position : 4 * position + 4]
    return int.from_bytes(data, sys.byteorder, signed=True)
