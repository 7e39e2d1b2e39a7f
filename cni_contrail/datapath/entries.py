"""Entries of a network's tables in the kernel: what follows from the desired state, and what was found.

Both sides have the same form, so that they can be compared (`plan`).
"""

from __future__ import annotations

import socket

from cni_contrail.datapath.desired import GATEWAY_MAC, LocalPort, Network
from cni_contrail.datapath.reserved_macs import mac_problem
from cni_contrail.link.bridge_port import BRIDGE
from cni_contrail.link.links import packed_mac
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address

ON_LINK = ""
"""In place of a gateway: what the route leads to is behind the bridge."""


class Source(NamedTuple):
    """Element of the filter: a port may send from this address with this MAC."""

    link: str
    mac: str
    address: str


class Behind(NamedTuple):
    """A MAC behind a tunnel."""

    link: str
    mac: str


class Entries(NamedTuple):
    """Addresses of the bridge; per MAC its port (`forwarding`); per address its MAC (`neighbours`); filter elements.

    The gateways' MAC is forwarded to the bridge itself.
    Of what is on other nodes also the node per MAC behind a tunnel (`destinations`), and the gateway per CIDR. `routes`
    also has the addresses of this node's ports that are in CIDRs of others: they are `ON_LINK`.
    """

    gateways: frozenset[Address]
    forwarding: dict[str, str]
    neighbours: dict[str, str]
    sources: frozenset[Source]
    destinations: dict[Behind, str]
    routes: dict[str, str]


def entries_of(network: Network, links: frozenset[str]) -> Entries:
    """Returns the entries of a network whose ports exist as `links`; a port without a link has none yet.

    One with a reserved MAC has none at all.
    `remote_entries` adds those of what is on other nodes.
    """
    ports = [port for port in network.ports if port.link in links and mac_problem(port.mac) is None]
    return Entries(
        gateways=frozenset(Address(each.address, each.prefix_length) for each in network.gateways),
        forwarding={GATEWAY_MAC: BRIDGE, **{port.mac: port.link for port in ports}},
        neighbours={address: port.mac for port in ports for address in port.addresses},
        sources=frozenset(source for port in ports for source in sources_of(port)),
        destinations={},
        routes={},
    )


def sources_of(port: LocalPort) -> list[Source]:
    """Returns the filter elements of a port: its addresses, and the link-local address that its kernel derives."""
    addresses = [*port.addresses, link_local_address(port.mac)]
    return [Source(port.link, port.mac, address) for address in addresses]


def link_local_address(mac: str) -> str:
    """Returns the IPv6 link-local address of a MAC (RFC 4291, appendix A: modified EUI-64)."""
    octets = packed_mac(mac)
    identifier = bytes([octets[0] ^ 2, octets[1], octets[2], 0xFF, 0xFE, octets[3], octets[4], octets[5]])
    return socket.inet_ntop(socket.AF_INET6, b"\xfe\x80" + bytes(6) + identifier)
