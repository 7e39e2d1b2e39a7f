"""rtnetlink requests about ports of a network's bridge, and what the kernel reports of them.

A port learns no MACs, and gets no frames for unknown ones. The other settings are the kernel's own defaults, each of
which cuts a pod off from others if somebody changes it, such as `isolated`.

The kernel lets a port forward frames as soon as its link has a carrier, and another program may end that. Without a
carrier, while the pod's end is down, no port forwards, and the kernel refuses to change that.

Sources: linux/if_bridge.h, linux/if_link.h.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from cni_contrail.link.bridge_port import packed_master, parse_master
from cni_contrail.link.links import LinkRef
from cni_contrail.link.message import NetlinkRequest, attribute, attributes, nested
from cni_contrail.link.named_tuple import NamedTuple

_RTM_NEWLINK = 16
_INFO = struct.Struct("=BxHiII")  # struct ifinfomsg
_UP, _RUNNING = 0x1, 0x40  # IFF_...
_IFLA_PROTINFO, _IFLA_LINKINFO = 12, 18
_IFLA_INFO_SLAVE_KIND, _IFLA_INFO_SLAVE_DATA = 4, 5
_STATE, _HAIRPIN, _LEARNING, _UNICAST_FLOOD, _PROXY_ARP = 1, 4, 8, 9, 10  # IFLA_BRPORT_...
_MULTICAST_FLOOD, _BROADCAST_FLOOD, _SUPPRESSION, _ISOLATED, _LOCKED = 27, 30, 32, 33, 39
_FORWARDING = b"\3"  # BR_STATE_FORWARDING
_OFF, _ON = b"\0", b"\1"

UNRESTRICTED: dict[int, bytes] = {_HAIRPIN: _OFF, _PROXY_ARP: _OFF, _ISOLATED: _OFF, _LOCKED: _OFF}
"""Settings of every port of the bridge, also of tunnels; a kernel that does not know one does not report it."""

_SETTINGS: Mapping[int, bytes] = UNRESTRICTED | {
    _LEARNING: _OFF,
    _UNICAST_FLOOD: _OFF,
    _MULTICAST_FLOOD: _ON,
    _BROADCAST_FLOOD: _ON,
    _SUPPRESSION: _OFF,
}


class PortInfo(NamedTuple):
    """Bridge settings of a link as the kernel reports them; `master` is 0 without a bridge.

    `is_blocked`: the link could forward frames, and the bridge does not let it.
    """

    master: int
    has_settings: bool
    is_blocked: bool


def attach_port(port: LinkRef, bridge: LinkRef) -> NetlinkRequest:
    """Requests a link to be a port of the bridge."""
    body = _INFO.pack(0, 0, port.ifindex, 0, 0) + packed_master(bridge.ifindex)
    return NetlinkRequest(_RTM_NEWLINK, 0, body, f"attach {port.name} to bridge {bridge.name}")


def set_port(port: LinkRef) -> NetlinkRequest:
    """Requests a port of the bridge to be up and to have its settings."""
    body = _INFO.pack(0, 0, port.ifindex, _UP, _UP) + _packed(_SETTINGS)
    return NetlinkRequest(_RTM_NEWLINK, 0, body, f"set port {port.name}")


def unblock_port(port: LinkRef) -> NetlinkRequest:
    """Requests that a port forwards frames; ENETDOWN if its link has lost its carrier."""
    body = _INFO.pack(0, 0, port.ifindex, 0, 0) + _packed({_STATE: _FORWARDING})
    return NetlinkRequest(_RTM_NEWLINK, 0, body, f"unblock port {port.name}")


def parse_port(body: bytes) -> PortInfo:
    """Parses an answer to `links.get` or `links.dump`, or a notification, also one of the bridge about its port."""
    settings = port_settings(body)
    return PortInfo(
        master=parse_master(body),
        has_settings=settings.get(_LEARNING) == _OFF and has_values(settings, _SETTINGS),
        is_blocked=is_blocked(body, settings),
    )


def port_settings(body: bytes) -> dict[int, bytes]:
    """Returns the settings of a port by number, from what `parse_port` parses; none without a bridge."""
    values = attributes(body[_INFO.size :])
    info = attributes(values.get(_IFLA_LINKINFO, b""))
    return attributes(info.get(_IFLA_INFO_SLAVE_DATA, b"") or values.get(_IFLA_PROTINFO, b""))


def has_values(settings: Mapping[int, bytes], wanted: Mapping[int, bytes]) -> bool:
    """Returns whether settings have the wanted values, apart from those that the kernel does not know."""
    return all(settings.get(kind, value) == value for kind, value in wanted.items())


def is_blocked(body: bytes, settings: Mapping[int, bytes]) -> bool:
    """Returns whether a link of that message is running, and as a port with these settings forwards no frames."""
    _, _, _, flags, _ = _INFO.unpack_from(body)
    return bool(flags & _RUNNING) and settings.get(_STATE, _FORWARDING) != _FORWARDING


def _packed(settings: Mapping[int, bytes]) -> bytes:
    data = nested(_IFLA_INFO_SLAVE_DATA, *(attribute(kind, value) for kind, value in settings.items()))
    return nested(_IFLA_LINKINFO, attribute(_IFLA_INFO_SLAVE_KIND, b"bridge"), data)
