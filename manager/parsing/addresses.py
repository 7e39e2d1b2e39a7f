"""Strict parsing of addresses and CIDRs: notations that only some tools accept are rejected."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from manager.parsing.errors import BadValueError
from manager.parsing.quoting import quoted

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Any overlap with these is rejected: 0.0.0.0/0, for example, contains the loopback range.
_RESERVED = {
    ip_network("127.0.0.0/8"): "loopback",
    ip_network("224.0.0.0/4"): "multicast",
    ip_network("::1/128"): "loopback",
    ip_network("fe80::/10"): "link-local; every IPv6 interface has one anyway",
    ip_network("ff00::/8"): "multicast",
}


def parse_address(value: Any) -> Address:
    """Parses an address without prefix and without zone (`fe80::1%eth0`). Raises BadValueError."""
    try:
        # ip_address() rejects leading zeros, which some tools read as octal, but accepts a zone.
        return ip_address(_text(value, without="%"))
    except ValueError as error:
        raise BadValueError(f"{quoted(value)} is not an IP address") from error


def parse_unicast(value: Any) -> Address:
    """Parses an address that an interface can have. Raises BadValueError."""
    address = parse_address(value)
    if address.is_unspecified or address.is_multicast or address.is_loopback:
        raise BadValueError(f"{quoted(value)} is not a unicast address")
    return address


def parse_cidr(value: Any) -> Network:
    """Parses a CIDR with a decimal prefix length and no host bits. Raises BadValueError, which names the right CIDR."""
    address, network = split_cidr(value)
    if address != network.network_address:
        raise BadValueError(f"{quoted(value)} has host bits set: write {network}")
    return network


def parse_subnet(value: Any) -> Network:
    """Parses a CIDR whose addresses interfaces can have. Raises BadValueError."""
    network = parse_cidr(value)
    for reserved, purpose in _RESERVED.items():
        if network.version == reserved.version and network.overlaps(reserved):
            raise BadValueError(f"{quoted(value)} overlaps {reserved} ({purpose})")
    return network


def split_cidr(value: Any) -> tuple[Address, Network]:
    """Returns address and network of a CIDR that may have host bits (`10.1.1.5/24`). Raises BadValueError."""
    try:
        address, _, prefix = _text(value, without="%").partition("/")
        # An address without "/" has an empty prefix here and is rejected.
        return ip_address(address), ip_network((address, _prefix_length(prefix)), strict=False)
    except ValueError as error:
        raise BadValueError(f"{quoted(value)} is not a CIDR") from error


def _prefix_length(text: str) -> int:
    """Accepts digits only: the standard library also accepts a netmask as prefix length."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not a prefix length")
    return int(text)


def _text(value: Any, *, without: str) -> str:
    if not isinstance(value, str) or without in value:
        raise ValueError(f"not a string, or a string with {without}")
    return value
