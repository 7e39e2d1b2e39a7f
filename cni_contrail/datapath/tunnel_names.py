"""Names of tunnels, and the MAC by which a node's end of a routed tunnel is known.

A VXLAN link has addresses of one family, so there is one tunnel for each family in which this node reaches others.
"""

from __future__ import annotations

import hashlib
import socket

from cni_contrail.datapath.entries import link_local_address
from cni_contrail.datapath.reserved_macs import NODE_MAC_PREFIX
from cni_contrail.link.addresses import packed

BRIDGED = ("vx0", "vx6")
"""Tunnels of a network, ports of its bridge: over IPv4, and over IPv6."""

ROUTED_PREFIX = "contrail."
"""Beginning of the names of index 0's tunnels, in the node's namespace."""


def bridged_tunnel(node: str) -> str:
    """Returns the name of the tunnel of a network to an address of a node."""
    return BRIDGED[":" in node]


def routed_tunnel(node: str) -> str:
    """Returns the name of the tunnel of index 0 to an address of a node."""
    return f"{ROUTED_PREFIX}{6 if ':' in node else 0}"


def node_mac(node: str) -> str:
    """Returns the MAC of the node that has this tunnel address: that of IPv4 is in it, of IPv6 a digest."""
    family, address = packed(node)
    unique = b"\0" + address if family == socket.AF_INET else hashlib.blake2b(address, digest_size=5).digest()
    return NODE_MAC_PREFIX + unique.hex(":")


def node_gateway(node: str) -> str:
    """Returns the link-local address by which packets are routed to the node that has this tunnel address."""
    return link_local_address(node_mac(node))
