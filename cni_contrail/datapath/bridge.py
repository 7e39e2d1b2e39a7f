"""rtnetlink requests about a network's bridge, its forwarding entries and its neighbours; `bridge_ports` has its ports.

Sources: rtnetlink(7), linux/if_bridge.h, linux/if_link.h, linux/neighbour.h.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping

from cni_contrail.datapath.desired import GATEWAY_MAC
from cni_contrail.link.addresses import packed
from cni_contrail.link.links import LinkInfo, LinkRef, packed_mac, packed_mtu, packed_name, parse_link
from cni_contrail.link.message import (
    CREATE,
    DUMP,
    EXCLUSIVE,
    NetlinkRequest,
    attribute,
    attributes,
    first_attributes,
    nested,
)
from cni_contrail.link.named_tuple import NamedTuple

_RTM_NEWLINK = 16
_RTM_NEWNEIGH, _RTM_DELNEIGH, _RTM_GETNEIGH = 28, 29, 30
_REPLACE = 0x100  # NLM_F_REPLACE

_INFO = struct.Struct("=BxHiII")  # struct ifinfomsg
_NEIGHBOUR = struct.Struct("=BxxxiHBB")  # struct ndmsg: family, index, state, flags, type
_UP, _WITHOUT_ARP, _MULTICAST = 0x1, 0x80, 0x1000  # IFF_...
_AF_BRIDGE = 7

_IFLA_ADDRESS = 1
_IFLA_LINKINFO = 18
_IFLA_INFO_KIND, _IFLA_INFO_DATA = 1, 2
_IFLA_BR_MCAST_SNOOPING = 23
_IFLA_BR_NF_CALL = (36, 37, 38)  # IPTABLES, IP6TABLES, ARPTABLES
_NDA_DST, _NDA_LLADDR, _NDA_MASTER = 1, 2, 9
_ENTRY = frozenset((_NDA_DST, _NDA_LLADDR, _NDA_MASTER))
_NUD_NOARP, _NUD_PERMANENT = 0x40, 0x80
_NTF_SELF, _NTF_MASTER = 0x02, 0x04
_OFF = b"\0"

_SETTINGS: Mapping[int, bytes] = {_IFLA_BR_MCAST_SNOOPING: _OFF, **dict.fromkeys(_IFLA_BR_NF_CALL, _OFF)}
_BRIDGE_KIND = nested(
    _IFLA_LINKINFO,
    attribute(_IFLA_INFO_KIND, b"bridge"),
    nested(_IFLA_INFO_DATA, *(attribute(kind, value) for kind, value in _SETTINGS.items())),
)


class BridgeInfo(NamedTuple):
    """A bridge as the kernel reports it; `has_settings`: those of `create_bridge`, besides its MAC and MTU."""

    link: LinkInfo
    has_settings: bool

    def is_right(self, mtu: int) -> bool:
        """Returns whether it is as desired for a network with this MTU."""
        return self.has_settings and (self.link.mac, self.link.mtu, self.link.is_up) == (GATEWAY_MAC, mtu, True)


class Neighbour(NamedTuple):
    """A permanent neighbour, or (with `address` None) a static forwarding entry: the MAC is behind the link.

    One with a `node` is that of a tunnel: the MAC is on the node with that address.
    """

    ifindex: int
    mac: str
    address: str | None
    node: str | None = None


def create_bridge(bridge: LinkRef, mtu: int) -> NetlinkRequest:
    """Requests the bridge, with the gateways' MAC and up. Its MTU has to be requested then (`set_bridge_mtu`).

    Without multicast snooping, which would need a querier. Netfilter's rules for IP do not apply to its frames, if the
    settings of the namespace (`namespace_settings`) do not let them apply to those of all its bridges.
    """
    mac = attribute(_IFLA_ADDRESS, packed_mac(GATEWAY_MAC))
    # An MTU given here does not last, and one requested later only if it is another one than the bridge has.
    other_mtu = packed_mtu(mtu ^ 1)
    body = _INFO.pack(0, 0, bridge.ifindex, _UP, _UP) + packed_name(bridge.name) + mac + other_mtu + _BRIDGE_KIND
    return NetlinkRequest(_RTM_NEWLINK, CREATE | EXCLUSIVE, body, f"create bridge {bridge.name}")


def set_bridge_mtu(bridge: LinkRef, mtu: int) -> NetlinkRequest:
    """Requests the MTU of the bridge, which otherwise follows the lowest of its ports, and is 1500 without ports."""
    body = _INFO.pack(0, 0, bridge.ifindex, 0, 0) + packed_mtu(mtu)
    return NetlinkRequest(_RTM_NEWLINK, 0, body, f"set MTU of bridge {bridge.name}")


def set_bridge(found: LinkInfo, mtu: int) -> NetlinkRequest:
    """Requests the settings of `create_bridge` for a bridge that exists, and that it answers ARP requests.

    The MAC only if it differs: the kernel forgets all neighbours when it is set, even to the same value.
    """
    mac = b"" if found.mac == GATEWAY_MAC else attribute(_IFLA_ADDRESS, packed_mac(GATEWAY_MAC))
    flags, mask = _UP | _MULTICAST, _UP | _WITHOUT_ARP | _MULTICAST
    body = _INFO.pack(0, 0, found.ifindex, flags, mask) + mac + packed_mtu(mtu) + _BRIDGE_KIND
    return NetlinkRequest(_RTM_NEWLINK, 0, body, f"set bridge {found.name}")


def parse_bridge(body: bytes) -> BridgeInfo | None:
    """Parses an answer to `links.get` or `links.dump`, or a notification; None for what is not a bridge."""
    link = parse_link(body)
    if link.kind != "bridge":
        return None
    _, _, _, flags, _ = _INFO.unpack_from(body)
    info = attributes(attributes(body[_INFO.size :])[_IFLA_LINKINFO])
    settings = attributes(info.get(_IFLA_INFO_DATA, b""))
    is_right = all(settings.get(kind, value) == value for kind, value in _SETTINGS.items())
    return BridgeInfo(link, is_right and flags & (_WITHOUT_ARP | _MULTICAST) == _MULTICAST)


def set_forwarding(mac: str, port: LinkRef) -> NetlinkRequest:
    """Requests that frames to the MAC leave by the port; a MAC that another port had moves."""
    body = _NEIGHBOUR.pack(_AF_BRIDGE, port.ifindex, _NUD_NOARP, _NTF_MASTER, 0)
    return NetlinkRequest(
        _RTM_NEWNEIGH,
        CREATE | _REPLACE,
        body + attribute(_NDA_LLADDR, packed_mac(mac)),
        f"forward frames for {mac} to {port.name}",
    )


def set_gateway_forwarding(bridge: LinkRef) -> NetlinkRequest:
    """Requests that frames to the gateways' MAC go to the bridge itself, which the kernel sees to when it is made."""
    body = _NEIGHBOUR.pack(_AF_BRIDGE, bridge.ifindex, _NUD_PERMANENT, _NTF_SELF, 0)
    return NetlinkRequest(
        _RTM_NEWNEIGH,
        CREATE | _REPLACE,
        body + attribute(_NDA_LLADDR, packed_mac(GATEWAY_MAC)),
        f"forward frames for {GATEWAY_MAC} to {bridge.name}",
    )


def remove_forwarding(mac: str, port: LinkRef) -> NetlinkRequest:
    """Requests to remove a forwarding entry."""
    body = _NEIGHBOUR.pack(_AF_BRIDGE, port.ifindex, 0, _NTF_MASTER, 0)
    return NetlinkRequest(
        _RTM_DELNEIGH, 0, body + attribute(_NDA_LLADDR, packed_mac(mac)), f"stop forwarding frames for {mac}"
    )


def set_neighbour(bridge: LinkRef, address: str, mac: str) -> NetlinkRequest:
    """Requests a permanent neighbour of the bridge, which the kernel neither asks for nor collects."""
    family, packed_address = packed(address)
    body = _NEIGHBOUR.pack(family, bridge.ifindex, _NUD_PERMANENT, 0, 0)
    body += attribute(_NDA_DST, packed_address) + attribute(_NDA_LLADDR, packed_mac(mac))
    return NetlinkRequest(_RTM_NEWNEIGH, CREATE | _REPLACE, body, f"set neighbour {address} to {mac}")


def remove_neighbour(bridge: LinkRef, address: str) -> NetlinkRequest:
    """Requests to remove a neighbour of the bridge."""
    family, packed_address = packed(address)
    body = _NEIGHBOUR.pack(family, bridge.ifindex, 0, 0, 0) + attribute(_NDA_DST, packed_address)
    return NetlinkRequest(_RTM_DELNEIGH, 0, body, f"remove neighbour {address}")


def dump_forwarding() -> NetlinkRequest:
    """Requests the forwarding entries of all bridges; `parse_neighbour` reads the answers."""
    return NetlinkRequest(_RTM_GETNEIGH, DUMP, _NEIGHBOUR.pack(_AF_BRIDGE, 0, 0, 0, 0), "read forwarding entries")


def dump_neighbours() -> NetlinkRequest:
    """Requests all neighbours of both families; `parse_neighbour` reads the answers."""
    return NetlinkRequest(_RTM_GETNEIGH, DUMP, _NEIGHBOUR.pack(0, 0, 0, 0, 0), "read neighbours")


def parse_neighbour(body: bytes, bridge: int | None = None) -> Neighbour | None:
    """Parses one answer; returns None for what is not an entry of ours: learned, not permanent, or of a link's own MAC.

    That of the bridge, whose index is `bridge`, is ours if it is the gateways'.
    """
    family, index, state, _, _ = _NEIGHBOUR.unpack_from(body)
    # A MAC, and what it is found with: the rest of an entry is not read, as there are tens of thousands.
    values = first_attributes(body, _NEIGHBOUR.size, _ENTRY, 2)
    mac = values.get(_NDA_LLADDR, b"").hex(":")
    if family == _AF_BRIDGE:
        if _NDA_MASTER in values:
            is_gateway = (state, index, mac) == (_NUD_PERMANENT, bridge, GATEWAY_MAC)
            return Neighbour(index, mac, None) if state == _NUD_NOARP or is_gateway else None
        return Neighbour(index, mac, None, _text(values[_NDA_DST])) if _NDA_DST in values else None
    if family not in (socket.AF_INET, socket.AF_INET6) or state != _NUD_PERMANENT or index != bridge:
        return None
    return Neighbour(index, mac, socket.inet_ntop(family, values[_NDA_DST]))


def _text(address: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET6 if len(address) == 16 else socket.AF_INET, address)
