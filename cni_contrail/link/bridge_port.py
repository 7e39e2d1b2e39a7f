"""A host end as a port of its network's bridge, in the namespace of that network.

It is created there: moving a link to another namespace waits for an RCU grace period, 20 ms.

Sources: linux/if_bridge.h, linux/if_link.h.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from cni_contrail.link.kernel_links import KERNEL_LINKS
from cni_contrail.link.links import LinkRef, packed_alias, packed_name
from cni_contrail.link.message import NetlinkRequest, attribute, attributes, nested, number, unpack_number
from cni_contrail.link.plan import InterfacePlan

BRIDGE = "br0"
"""Name of each network's bridge."""

BRIDGE_INDEXES = (2, 1 << 20)
"""Indexes that a bridge may have, given at its creation: the first after the loopback's, or, where that is one of the
KERNEL_LINKS, one that the kernel gives to no other link in practice."""

_RTM_NEWLINK = 16
_INFO = struct.Struct("=BxHiII")  # struct ifinfomsg
_UP = 0x1
_IFLA_MASTER = 10
_IFLA_LINKINFO = 18
_IFLA_INFO_SLAVE_KIND, _IFLA_INFO_SLAVE_DATA = 4, 5
_IFLA_BRPORT_LEARNING, _IFLA_BRPORT_UNICAST_FLOOD = 8, 9
_OFF = b"\0"

PORT_SETTINGS = nested(
    _IFLA_LINKINFO,
    attribute(_IFLA_INFO_SLAVE_KIND, b"bridge"),
    nested(
        _IFLA_INFO_SLAVE_DATA,
        attribute(_IFLA_BRPORT_LEARNING, _OFF),
        attribute(_IFLA_BRPORT_UNICAST_FLOOD, _OFF),
    ),
)
"""Attribute of a port that learns no MACs and gets no frames for unknown ones."""


def bridge_of(indexes: Mapping[str, int]) -> LinkRef:
    """Returns the bridge of a network, or the one to create; `indexes` are those of all links of its namespace."""
    found = indexes.get(BRIDGE)
    if found in BRIDGE_INDEXES:
        return LinkRef(BRIDGE, found)
    usual, other = BRIDGE_INDEXES
    is_taken = any(index == usual and name in KERNEL_LINKS for name, index in indexes.items())
    return LinkRef(BRIDGE, other if is_taken else usual)


def packed_master(bridge: int) -> bytes:
    """Returns the attribute that makes a link a port of the bridge with this index."""
    return number(_IFLA_MASTER, bridge)


def parse_master(body: bytes) -> int:
    """Returns from an answer to `links.get` or `links.dump` the index of the bridge, 0 without one."""
    values = attributes(body[_INFO.size :])
    return unpack_number(values[_IFLA_MASTER]) if _IFLA_MASTER in values else 0


def set_bridged_end(plan: InterfacePlan) -> NetlinkRequest:
    """Requests a host end that is a port of the bridge to be up, with its alias and PORT_SETTINGS."""
    body = _INFO.pack(0, 0, 0, _UP, _UP) + packed_name(plan.host_name) + packed_alias(plan.alias) + PORT_SETTINGS
    what = f"{plan.name}: set port {plan.host_name} of bridge {BRIDGE} up"
    return NetlinkRequest(_RTM_NEWLINK, 0, body, what)
