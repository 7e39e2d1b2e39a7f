"""A host end as a port of its network's bridge, in the namespace of that network.

It is created there: moving a link to another namespace waits for an RCU grace period, 20 ms.

Sources: linux/if_bridge.h, linux/if_link.h.
"""

from __future__ import annotations

import struct

from cni_contrail.link.links import LinkRef, packed_alias, packed_name
from cni_contrail.link.message import NetlinkRequest, attribute, attributes, nested, number, unpack_number
from cni_contrail.link.plan import InterfacePlan

BRIDGE = LinkRef("br0", 2)
"""Each network's bridge. Its index is given at creation: the first after the loopback's."""

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


def packed_master() -> bytes:
    """Returns the attribute that makes a link a port of the bridge."""
    return number(_IFLA_MASTER, BRIDGE.ifindex)


def parse_master(body: bytes) -> int:
    """Returns from an answer to `links.get` or `links.dump` the index of the bridge, 0 without one."""
    values = attributes(body[_INFO.size :])
    return unpack_number(values[_IFLA_MASTER]) if _IFLA_MASTER in values else 0


def set_bridged_end(plan: InterfacePlan) -> NetlinkRequest:
    """Requests a host end that is a port of the bridge to be up, with its alias and PORT_SETTINGS."""
    body = _INFO.pack(0, 0, 0, _UP, _UP) + packed_name(plan.host_name) + packed_alias(plan.alias) + PORT_SETTINGS
    what = f"{plan.name}: set port {plan.host_name} of bridge {BRIDGE.name} up"
    return NetlinkRequest(_RTM_NEWLINK, 0, body, what)
