"""rtnetlink requests of nested mode: VLAN links of the host, and macvlans over them in sandboxes.

Sources: rtnetlink(7), linux/if_link.h.
"""

from __future__ import annotations

import struct

from cni_contrail.link import links
from cni_contrail.link.links import LinkInfo, LinkRef
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
_NO_INDEX = _INFO.pack(0, 0, 0, 0, 0)

_IFLA_ADDRESS = 1
_IFLA_LINK = 5
_IFLA_LINKINFO = 18
_IFLA_NET_NS_FD = 28
_IFLA_EXT_MASK = 29
_IFLA_TARGET_NETNSID = 46
_IFLA_INFO_KIND = 1
_IFLA_INFO_DATA = 2
_IFLA_VLAN_ID = 1
_IFLA_VLAN_PROTOCOL = 5
_IFLA_MACVLAN_MODE = 1
_SKIP_STATISTICS = 8  # RTEXT_FILTER_SKIP_STATS

_VLAN_NUMBER = struct.Struct("=H")
_802_1Q = b"\x81\x00"  # ETH_P_8021Q, in network byte order; a VLAN of 802.1ad may have the same number
_KIND_VLAN = attribute(_IFLA_INFO_KIND, b"vlan")
_KIND_MACVLAN = attribute(_IFLA_INFO_KIND, b"macvlan")
VEPA = 2  # MACVLAN_MODE_VEPA: all traffic leaves by the parent, so that the vrouter sees traffic between pods too
PASSTHRU = 8  # MACVLAN_MODE_PASSTHRU: the only macvlan of its parent


class VlanLink(NamedTuple):
    """An 802.1Q VLAN link of the host; its parent is in the host's namespace too."""

    info: LinkInfo
    vlan_id: int

    @property
    def parent_index(self) -> int:
        """Index of the link that carries the VLAN."""
        return self.info.peer_index

    @property
    def ref(self) -> LinkRef:
        """The link in requests."""
        return LinkRef(self.info.name, self.info.ifindex)


def create_vlan(plan: InterfacePlan, parent_index: int) -> NetlinkRequest:
    """Requests the VLAN link of the plan, with the MTU and the MAC of its parent; it is created down."""
    data = nested(_IFLA_INFO_DATA, attribute(_IFLA_VLAN_ID, _VLAN_NUMBER.pack(plan.vlan_id)))
    body = (
        _NO_INDEX
        + links.packed_name(plan.host_name)
        + number(_IFLA_LINK, parent_index)
        + nested(_IFLA_LINKINFO, _KIND_VLAN, data)
    )
    what = f"{plan.name}: create VLAN {plan.vlan_id} of {plan.parent}"
    return NetlinkRequest(_RTM_NEWLINK, CREATE | EXCLUSIVE, body, what)


def set_alias(name: str, alias: str) -> NetlinkRequest:
    """Requests the link of this name to have an alias: the kernel ignores one in the request that creates a link."""
    body = _NO_INDEX + links.packed_name(name) + links.packed_alias(alias)
    return NetlinkRequest(_RTM_SETLINK, 0, body, f"set the alias of link {name}")


def create_macvlan(plan: InterfacePlan, temporary_name: str, vlan_index: int, netns_fd: int) -> NetlinkRequest:
    """Requests the macvlan of the plan in the sandbox `netns_fd`, over a VLAN link of the host.

    Before Linux 6.15 a name that a link of the host has is rejected, so it is created under another one.
    """
    body = (
        _NO_INDEX
        + links.packed_name(temporary_name)
        + attribute(_IFLA_ADDRESS, links.packed_mac(plan.mac))
        + links.packed_mtu(plan.mtu)
        + number(_IFLA_LINK, vlan_index)
        + number(_IFLA_NET_NS_FD, netns_fd)
        + _macvlan(VEPA)
    )
    what = f"{plan.name}: create the macvlan with MAC {plan.mac} and MTU {plan.mtu} over VLAN {plan.vlan_id}"
    return NetlinkRequest(_RTM_NEWLINK, CREATE | EXCLUSIVE, body, what)


def name_macvlan(end: LinkRef, plan: InterfacePlan) -> NetlinkRequest:
    """Requests a macvlan of the sandbox to have its final name and alias."""
    body = _INFO.pack(0, 0, end.ifindex, 0, 0) + links.packed_name(plan.name) + links.packed_alias(plan.alias)
    return NetlinkRequest(_RTM_SETLINK, 0, body, f"{plan.name}: name the macvlan")


def create_guard(name: str, vlan: LinkRef) -> NetlinkRequest:
    """Requests a macvlan in the host's namespace that the kernel creates only if the VLAN link has no other macvlan.

    Whatever namespace that is in. While it exists, the kernel creates no other macvlan over the VLAN link.
    """
    body = _NO_INDEX + links.packed_name(name) + number(_IFLA_LINK, vlan.ifindex) + _macvlan(PASSTHRU)
    return NetlinkRequest(_RTM_NEWLINK, CREATE | EXCLUSIVE, body, f"guard VLAN link {vlan.name}")


def dump_vlans() -> NetlinkRequest:
    """Requests all VLAN links; `parse_vlan` reads the answers. A kernel without VLANs may answer with other links."""
    body = _NO_INDEX + nested(_IFLA_LINKINFO, _KIND_VLAN) + number(_IFLA_EXT_MASK, _SKIP_STATISTICS)
    return NetlinkRequest(_RTM_GETLINK, DUMP, body, "read VLAN links")


def get_in_netns(name: str, netns_id: int) -> NetlinkRequest:
    """Requests a link in the namespace that the socket's namespace knows by this ID."""
    body = _NO_INDEX + links.packed_name(name) + number(_IFLA_TARGET_NETNSID, netns_id)
    body += number(_IFLA_EXT_MASK, _SKIP_STATISTICS)
    return NetlinkRequest(_RTM_GETLINK, 0, body, f"find link {name} in namespace {netns_id}")


def delete_in_netns(end: LinkRef, netns_id: int) -> NetlinkRequest:
    """Requests to delete a link, by its index, in the namespace that the socket's namespace knows by this ID."""
    body = _INFO.pack(0, 0, end.ifindex, 0, 0) + number(_IFLA_TARGET_NETNSID, netns_id)
    return NetlinkRequest(_RTM_DELLINK, 0, body, f"delete link {end.name} in namespace {netns_id}")


def parse_vlan(body: bytes) -> VlanLink | None:
    """Parses an answer to `dump_vlans`, or of a link; returns None for any other link than a `VlanLink`."""
    info = links.parse_link(body)
    if info.kind != "vlan" or info.peer_netns_id >= 0:
        return None
    data = _info_data(body)
    if data.get(_IFLA_VLAN_PROTOCOL, _802_1Q) != _802_1Q:
        return None
    return VlanLink(info, _VLAN_NUMBER.unpack(data[_IFLA_VLAN_ID])[0])


def parse_macvlan_mode(body: bytes) -> int:
    """Returns the mode of a macvlan from an answer about it, 0 if the link is none."""
    mode = _info_data(body).get(_IFLA_MACVLAN_MODE) if links.parse_link(body).kind == "macvlan" else None
    return 0 if mode is None else unpack_number(mode)


def _macvlan(mode: int) -> bytes:
    return nested(_IFLA_LINKINFO, _KIND_MACVLAN, nested(_IFLA_INFO_DATA, number(_IFLA_MACVLAN_MODE, mode)))


def _info_data(body: bytes) -> dict[int, bytes]:
    link_info = attributes(attributes(body[_INFO.size :]).get(_IFLA_LINKINFO, b""))
    return attributes(link_info.get(_IFLA_INFO_DATA, b""))
