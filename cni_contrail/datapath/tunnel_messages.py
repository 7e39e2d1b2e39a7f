"""rtnetlink requests about tunnels: VXLAN links, and the forwarding entries that say which node has a MAC.

A tunnel learns nothing and floods nothing: it has static entries only, and no default destination. UDP checksums are
on, since without them network cards do not offload segmentation of tunnelled packets.

Sources: rtnetlink(7), linux/if_link.h, linux/neighbour.h, RFC 7348.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping

from cni_contrail.datapath.bridge_ports import UNRESTRICTED, PortInfo, has_values, is_blocked, port_settings
from cni_contrail.link.addresses import packed
from cni_contrail.link.bridge_port import parse_master
from cni_contrail.link.links import LinkRef, packed_mac, packed_mtu, packed_name, parse_link
from cni_contrail.link.message import (
    CREATE,
    EXCLUSIVE,
    NetlinkRequest,
    attribute,
    attributes,
    nested,
    number,
    unpack_number,
)
from cni_contrail.link.named_tuple import NamedTuple

_RTM_NEWLINK = 16
_RTM_NEWNEIGH, _RTM_DELNEIGH = 28, 29
_REPLACE = 0x100  # NLM_F_REPLACE

_LINK = struct.Struct("=BxHiII")  # struct ifinfomsg
_NEIGHBOUR = struct.Struct("=BxxxiHBB")  # struct ndmsg: family, index, state, flags, type
_UP = 0x1
_AF_BRIDGE = 7

_IFLA_ADDRESS, _IFLA_MASTER, _IFLA_LINKINFO, _IFLA_AF_SPEC, _IFLA_NET_NS_FD = 1, 10, 18, 26, 28
_INFO_KIND, _INFO_DATA, _INFO_SLAVE_KIND, _INFO_SLAVE_DATA = 1, 2, 4, 5
_ID, _LOCAL, _LEARNING, _PORT, _LOCAL6, _CHECKSUM = 1, 4, 7, 15, 17, 18  # IFLA_VXLAN_...
_PORT_LEARNING, _UNICAST_FLOOD, _MULTICAST_FLOOD, _BROADCAST_FLOOD, _SUPPRESSION = 8, 9, 27, 30, 32  # IFLA_BRPORT_...
_INET6_ADDR_GEN_MODE = 8
_NO_ADDRESS = b"\1"  # IN6_ADDR_GEN_MODE_NONE
_NDA_DST, _NDA_LLADDR = 1, 2
_NUD_STATIC = 0x42  # NOARP: it does not age; and REACHABLE, since VXLAN links refuse NOARP alone
_NTF_SELF, _NTF_MASTER = 0x02, 0x04
_OFF, _ON = b"\0", b"\1"

_PORT_FLAGS: Mapping[int, bytes] = UNRESTRICTED | {
    _PORT_LEARNING: _OFF,
    _UNICAST_FLOOD: _OFF,
    _MULTICAST_FLOOD: _OFF,
    _BROADCAST_FLOOD: _OFF,
    _SUPPRESSION: _ON,
}
_PORT_SETTINGS = nested(
    _IFLA_LINKINFO,
    attribute(_INFO_SLAVE_KIND, b"bridge"),
    nested(_INFO_SLAVE_DATA, *(attribute(kind, value) for kind, value in _PORT_FLAGS.items())),
)
_WITHOUT_IPV6_ADDRESS = nested(_IFLA_AF_SPEC, nested(socket.AF_INET6, attribute(_INET6_ADDR_GEN_MODE, _NO_ADDRESS)))


class Tunnel(NamedTuple):
    """A VXLAN link: packets leave the node from the address `local`, to a UDP port that is also the receiving one."""

    name: str
    vni: int
    local: str
    port: int
    mac: str
    mtu: int


class TunnelInfo(NamedTuple):
    """A link as the kernel reports it, if it is a VXLAN link.

    `as_port`: whether its bridge floods nothing to it, and answers for what is behind it. `is_outside`: its packets
    leave by another namespace.
    """

    tunnel: Tunnel
    ifindex: int
    is_up: bool
    is_learning: bool
    has_checksums: bool
    as_port: PortInfo
    is_outside: bool

    @property
    def ref(self) -> LinkRef:
        """The link, for requests."""
        return LinkRef(self.tunnel.name, self.ifindex)


def create_tunnel(tunnel: Tunnel, netns_fd: int | None = None, bridge: LinkRef | None = None) -> NetlinkRequest:
    """Requests a tunnel, which is down, as a port of a bridge if there is one; EEXIST if its VNI is in use.

    It is in the namespace `netns_fd`, and its packets leave by that of the socket to which this request goes.
    """
    body = _LINK.pack(0, 0, 0, 0, 0) + packed_name(tunnel.name) + packed_mtu(tunnel.mtu)
    body += attribute(_IFLA_ADDRESS, packed_mac(tunnel.mac)) + _vxlan(tunnel)
    if netns_fd is not None:
        body += number(_IFLA_NET_NS_FD, netns_fd)
    body += number(_IFLA_MASTER, bridge.ifindex) if bridge is not None else b""
    return NetlinkRequest(_RTM_NEWLINK, CREATE | EXCLUSIVE, body, f"create tunnel {tunnel.name} of VNI {tunnel.vni}")


def set_tunnel(found: TunnelInfo, tunnel: Tunnel) -> Iterator[NetlinkRequest]:
    """Requests what can be changed of a tunnel that exists: its MTU and MAC, local address, and that it does not learn.

    What is right is not set. The kernel refuses an MTU beside settings of VXLAN.
    """
    header, what = _LINK.pack(0, 0, found.ifindex, 0, 0), f"set tunnel {tunnel.name}"
    if found.tunnel.mac != tunnel.mac:
        yield NetlinkRequest(_RTM_NEWLINK, 0, header + attribute(_IFLA_ADDRESS, packed_mac(tunnel.mac)), what)
    if found.tunnel.mtu != tunnel.mtu:
        yield NetlinkRequest(_RTM_NEWLINK, 0, header + packed_mtu(tunnel.mtu), what)
    if found.tunnel.local != tunnel.local or found.is_learning:
        data = number(_ID, tunnel.vni) + _local(tunnel.local) + attribute(_LEARNING, _OFF)
        settings = nested(_IFLA_LINKINFO, attribute(_INFO_KIND, b"vxlan"), nested(_INFO_DATA, data))
        yield NetlinkRequest(_RTM_NEWLINK, 0, header + settings, what)


def can_be_set(found: TunnelInfo, tunnel: Tunnel) -> bool:
    """Returns whether the kernel can make a tunnel out of the one that was found; otherwise it is replaced."""
    same = found.tunnel.vni == tunnel.vni and found.tunnel.port == tunnel.port
    return same and (":" in found.tunnel.local) == (":" in tunnel.local)


def set_bridge(tunnel: LinkRef, bridge: LinkRef) -> NetlinkRequest:
    """Requests a tunnel to be a port of the bridge."""
    body = _LINK.pack(0, 0, tunnel.ifindex, 0, 0) + number(_IFLA_MASTER, bridge.ifindex)
    return NetlinkRequest(_RTM_NEWLINK, 0, body, f"attach {tunnel.name} to bridge {bridge.name}")


def set_port_flags(tunnel: LinkRef) -> NetlinkRequest:
    """Requests that the bridge floods nothing to a tunnel, and answers ARP and neighbour discovery for what is there.

    It answers only for MACs behind a port with suppression, so local pods go on to answer themselves.
    """
    body = _LINK.pack(0, 0, tunnel.ifindex, 0, 0) + _PORT_SETTINGS
    return NetlinkRequest(_RTM_NEWLINK, 0, body, f"set port {tunnel.name}")


def disable_addresses(tunnel: LinkRef) -> NetlinkRequest:
    """Requests that the kernel gives a tunnel no link-local address of its own."""
    body = _LINK.pack(0, 0, tunnel.ifindex, 0, 0) + _WITHOUT_IPV6_ADDRESS
    return NetlinkRequest(_RTM_NEWLINK, 0, body, f"set link {tunnel.name}")


def parse_tunnel(body: bytes) -> TunnelInfo | None:
    """Parses an answer to `links.get` or `links.dump`; returns None for what is not a VXLAN link."""
    link = parse_link(body)
    if link.kind != "vxlan":
        return None
    values = attributes(body[_LINK.size :])
    info = attributes(values[_IFLA_LINKINFO])
    data = attributes(info.get(_INFO_DATA, b""))
    local = data.get(_LOCAL6) or data.get(_LOCAL) or b""
    port = int.from_bytes(data.get(_PORT, b""), "big")
    vni = unpack_number(data[_ID]) if _ID in data else 0
    return TunnelInfo(
        Tunnel(link.name, vni, _text(local), port, link.mac, link.mtu),
        ifindex=link.ifindex,
        is_up=link.is_up,
        is_learning=data.get(_LEARNING) != _OFF,
        has_checksums=data.get(_CHECKSUM) == _ON,
        as_port=parse_tunnel_port(body),
        is_outside=link.peer_netns_id != -1,
    )


def parse_tunnel_port(body: bytes) -> PortInfo:
    """Parses the settings of a tunnel as a port, from what `bridge_ports.parse_port` parses."""
    settings = port_settings(body)
    return PortInfo(parse_master(body), has_values(settings, _PORT_FLAGS), is_blocked(body, settings))


def set_destination(mac: str, tunnel: LinkRef, node: str, *, bridged: bool) -> NetlinkRequest:
    """Requests that frames to the MAC go to a node by the tunnel; one that was elsewhere moves.

    `bridged`: the bridge sends them into the tunnel, too.
    """
    flags = _NTF_SELF | _NTF_MASTER if bridged else _NTF_SELF
    body = _NEIGHBOUR.pack(_AF_BRIDGE, tunnel.ifindex, _NUD_STATIC, flags, 0)
    body += attribute(_NDA_LLADDR, packed_mac(mac)) + attribute(_NDA_DST, packed(node)[1])
    return NetlinkRequest(_RTM_NEWNEIGH, CREATE | _REPLACE, body, f"{tunnel.name}: send frames for {mac} to {node}")


def remove_destination(mac: str, tunnel: LinkRef) -> NetlinkRequest:
    """Requests to remove the entry of a tunnel, but not the bridge's."""
    body = _NEIGHBOUR.pack(_AF_BRIDGE, tunnel.ifindex, 0, _NTF_SELF, 0) + attribute(_NDA_LLADDR, packed_mac(mac))
    return NetlinkRequest(_RTM_DELNEIGH, 0, body, f"{tunnel.name}: send no frames for {mac}")


def _vxlan(tunnel: Tunnel) -> bytes:
    data = number(_ID, tunnel.vni) + _local(tunnel.local) + attribute(_PORT, tunnel.port.to_bytes(2, "big"))
    data += attribute(_LEARNING, _OFF) + attribute(_CHECKSUM, _ON)
    return nested(_IFLA_LINKINFO, attribute(_INFO_KIND, b"vxlan"), nested(_INFO_DATA, data))


def _local(address: str) -> bytes:
    family, local = packed(address)
    return attribute(_LOCAL6 if family == socket.AF_INET6 else _LOCAL, local)


def _text(address: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET6 if len(address) == 16 else socket.AF_INET, address) if address else ""
