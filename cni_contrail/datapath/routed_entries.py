"""What routed ports have in the kernel: what follows from the desired state, and what was found, in the same form."""

from __future__ import annotations

import socket

from cni_contrail.datapath.desired import RoutedPort
from cni_contrail.datapath.entries import link_local_address
from cni_contrail.datapath.routed_messages import Settings, desired_settings
from cni_contrail.link.addresses import packed
from cni_contrail.link.links import packed_mac
from cni_contrail.link.named_tuple import NamedTuple


class LinkAddress(NamedTuple):
    """An address of a link, or behind it."""

    link: str
    address: str


class RoutedEntries(NamedTuple):
    """Entries by kind.

    `ports` are the links that the filter knows, `sources` what they may send from, `networks` those whose ports may
    send to each other. `settings` are by link, MACs of `neighbours` by link and address, links of `routes` by address.
    """

    ports: frozenset[str]
    sources: frozenset[LinkAddress]
    settings: dict[str, Settings]
    gateways: frozenset[LinkAddress]
    neighbours: dict[LinkAddress, str]
    routes: dict[str, str]
    networks: frozenset[int] = frozenset()


def entries_of(
    ports: tuple[RoutedPort, ...], links: frozenset[str], taken: frozenset[str]
) -> tuple[RoutedEntries, frozenset[LinkAddress]]:
    """Returns the entries of the ports whose link exists, and the addresses that a port cannot have.

    Those are `taken`, by routes of other programs, or have been given to a port before it.
    """
    present = [port for port in ports if port.link in links]
    routes: dict[str, str] = {}
    refused = set()
    for port in present:
        for address in port.addresses:
            if address in taken or routes.setdefault(address, port.link) != port.link:
                refused.add(LinkAddress(port.link, address))
    sources = {LinkAddress(port.link, each) for port in present for each in sources_of(port)}
    entries = RoutedEntries(
        ports=frozenset(port.link for port in present),
        sources=frozenset(sources - refused),
        settings={port.link: desired_settings(ipv6=has_ipv6(port), group=port.network) for port in present},
        gateways=frozenset(LinkAddress(port.link, gateway) for port in present for gateway in gateways_of(port)),
        neighbours={LinkAddress(port.link, each): port.mac for port in present for each in port.addresses},
        routes=routes,
        networks=frozenset(port.network for port in present),
    )
    return entries, frozenset(refused)


def normalised(port: RoutedPort) -> RoutedPort:
    """Returns the port with MAC and addresses as the kernel reports them; raises ValueError if one is malformed."""
    return port._replace(
        mac=packed_mac(port.mac).hex(":"),
        addresses=tuple(_normalised(address) for address in port.addresses),
        gateways=tuple(_normalised(gateway) for gateway in port.gateways),
    )


def _normalised(address: str) -> str:
    return socket.inet_ntop(*packed(address))


def sources_of(port: RoutedPort) -> list[str]:
    """Returns what a port may send from: its addresses and, with IPv6, the link-local one that its kernel derives."""
    return [*port.addresses, link_local_address(port.mac)] if has_ipv6(port) else list(port.addresses)


def gateways_of(port: RoutedPort) -> list[str]:
    """Returns the gateways of the families in which a port has an address."""
    families = {":" in address for address in port.addresses}
    return [gateway for gateway in port.gateways if (":" in gateway) in families]


def has_ipv6(port: RoutedPort) -> bool:
    """Returns whether a port has an IPv6 address."""
    return any(":" in address for address in port.addresses)
