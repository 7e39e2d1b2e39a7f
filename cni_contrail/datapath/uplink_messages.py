"""rtnetlink requests about uplinks: the pair of links, and routes through them.

Sources: rtnetlink(7), linux/if_link.h, linux/veth.h.
"""

from __future__ import annotations

import socket
import struct

from cni_contrail.datapath.desired import GATEWAY_MAC, UPLINK
from cni_contrail.datapath.routed_messages import ROUTE_PROTOCOL
from cni_contrail.datapath.uplink_rules import alias_of, node_link
from cni_contrail.link.addresses import packed
from cni_contrail.link.links import LinkRef, packed_alias, packed_mac, packed_mtu, packed_name
from cni_contrail.link.message import CREATE, EXCLUSIVE, NetlinkRequest, attribute, nested, number
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.routes import MAIN_TABLE, UNICAST, packed_destination

_RTM_NEWLINK, _RTM_SETLINK = 16, 19
_RTM_NEWROUTE, _RTM_DELROUTE = 24, 25
_REPLACE = 0x100  # NLM_F_REPLACE

_LINK = struct.Struct("=BxHiII")  # struct ifinfomsg
_ROUTE = struct.Struct("=BBBBBBBBI")  # struct rtmsg: family, lengths, TOS, table, protocol, scope, type, flags
_IFLA_ADDRESS, _IFLA_LINKINFO, _IFLA_NET_NS_FD = 1, 18, 28
_IFLA_INFO_KIND, _IFLA_INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY = 1, 4, 5, 6
_UNIVERSE, _ANY_SCOPE = 0, 255
_METRIC: dict[int, int] = {socket.AF_INET: 0, socket.AF_INET6: 1024}


class UplinkRoute(NamedTuple):
    """A route through one end of an uplink: its destination (CIDR), and the address of the other end."""

    destination: str
    gateway: str


def create_uplink(vni: int, mtu: int, netns_fd: int) -> NetlinkRequest:
    """Requests the uplink of a network, from the node's namespace; `netns_fd` is that of the network."""
    peer = _LINK.pack(0, 0, 0, 0, 0) + packed_name(UPLINK) + packed_mtu(mtu) + number(_IFLA_NET_NS_FD, netns_fd)
    kind = attribute(_IFLA_INFO_KIND, b"veth")
    pair = nested(_IFLA_LINKINFO, kind, nested(_IFLA_INFO_DATA, nested(_VETH_INFO_PEER, peer)))
    mac = attribute(_IFLA_ADDRESS, packed_mac(GATEWAY_MAC))
    body = _LINK.pack(0, 0, 0, 0, 0) + packed_name(node_link(vni)) + mac + packed_mtu(mtu) + pair
    return NetlinkRequest(_RTM_NEWLINK, CREATE | EXCLUSIVE, body, f"create uplink {node_link(vni)}")


def set_mtu(end: LinkRef, mtu: int) -> NetlinkRequest:
    """Requests the MTU of an end."""
    body = _LINK.pack(0, 0, end.ifindex, 0, 0) + packed_mtu(mtu)
    return NetlinkRequest(_RTM_SETLINK, 0, body, f"set MTU of link {end.name} to {mtu}")


def set_alias(end: LinkRef, vni: int) -> NetlinkRequest:
    """Requests the alias by which the node's end of a network's uplink is known."""
    body = _LINK.pack(0, 0, end.ifindex, 0, 0) + packed_alias(alias_of(vni))
    return NetlinkRequest(_RTM_SETLINK, 0, body, f"set alias of link {end.name}")


def add_route(end: LinkRef, route: UplinkRoute) -> NetlinkRequest:
    """Requests a route; EEXIST if there is one to this destination."""
    return _new_route(end, route, CREATE | EXCLUSIVE)


def set_route(end: LinkRef, route: UplinkRoute) -> NetlinkRequest:
    """Requests a route in place of one to this destination."""
    return _new_route(end, route, CREATE | _REPLACE)


def remove_route(end: LinkRef, route: UplinkRoute) -> NetlinkRequest:
    """Requests to remove a route, whoever added it."""
    what = f"{end.name}: remove route to {route.destination}"
    return NetlinkRequest(_RTM_DELROUTE, 0, _body(end, route, protocol=0, scope=_ANY_SCOPE), what)


def _new_route(end: LinkRef, route: UplinkRoute, flags: int) -> NetlinkRequest:
    body = _body(end, route, protocol=ROUTE_PROTOCOL, scope=_UNIVERSE)
    return NetlinkRequest(_RTM_NEWROUTE, flags, body, f"{end.name}: add route to {route.destination}")


def _body(end: LinkRef, route: UplinkRoute, *, protocol: int, scope: int) -> bytes:
    family, network, length = packed_destination(route.destination)
    body = _ROUTE.pack(family, length, 0, 0, MAIN_TABLE, protocol, scope, UNICAST, 0)
    body += attribute(_RTA_DST, network) + number(_RTA_OIF, end.ifindex)
    body += attribute(_RTA_GATEWAY, packed(route.gateway)[1])
    return body + number(_RTA_PRIORITY, _METRIC[family]) if _METRIC[family] else body
