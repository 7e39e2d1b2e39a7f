"""Tunnel addresses: those to which other nodes send the packets of networks that span nodes."""

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

_MAX_QUOTED: Final = 200  # characters of a value in a message


def parse_tunnel_address(text: str) -> IPv4Address | IPv6Address:
    """Returns the address. Raises ValueError if other nodes cannot send packets to it."""
    address = ip_address(text)
    if address.is_unspecified or address.is_loopback or address.is_link_local or address.is_multicast:
        raise ValueError(f"{text[:_MAX_QUOTED]!r} is not an address that other nodes reach")
    return address
