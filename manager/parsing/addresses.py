"""Addresses and CIDRs as users write them, read strictly: what one tool takes and the next refuses is refused here."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from manager.parsing.errors import BadValueError
from manager.parsing.quoting import quoted

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NOT_FOR_INTERFACES = {
    ip_network("127.0.0.0/8"): "loopback",
    ip_network("224.0.0.0/4"): "multicast",
    ip_network("::1/128"): "loopback",
    ip_network("fe80::/10"): "link-local, which every IPv6 interface has anyway",
    ip_network("ff00::/8"): "multicast",
}


def parse_address(value: Any) -> Address:
    """An address without prefix and without zone (`fe80::1%eth0`). Raises BadValueError."""
    try:
        return ip_address(_text(value, without="%"))
    except ValueError as error:
        raise BadValueError(f"{quoted(value)} is no IP address") from error


def parse_unicast(value: Any) -> Address:
    """An address that an interface can have. Raises BadValueError."""
    address = parse_address(value)
    if address.is_unspecified or address.is_multicast or address.is_loopback:
        raise BadValueError(f"{quoted(value)} is no address of an interface")
    return address


def parse_cidr(value: Any) -> Network:
    """A CIDR with a decimal prefix length and no host bits. Raises BadValueError, which names the right one."""
    address, network = split_cidr(value)
    if address != network.network_address:
        raise BadValueError(f"{quoted(value)} has host bits set: write {network}")
    return network


def parse_subnet(value: Any) -> Network:
    """A CIDR whose addresses interfaces can have. Raises BadValueError."""
    network = parse_cidr(value)
    for reserved, purpose in _NOT_FOR_INTERFACES.items():
        if network.version == reserved.version and network.overlaps(reserved):
            raise BadValueError(f"{quoted(value)} overlaps {reserved} ({purpose})")
    return network


def split_cidr(value: Any) -> tuple[Address, Network]:
    """Address and network of a CIDR that may have host bits (`10.1.1.5/24`). Raises BadValueError."""
    try:
        address, _, prefix = _text(value, without="%").partition("/")
        return ip_address(address), ip_network((address, _number(prefix)), strict=False)
    except ValueError as error:
        raise BadValueError(f"{quoted(value)} is no CIDR") from error


def _number(text: str) -> int:
    """Digits alone: a netmask is no prefix length here, though the standard library takes one."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is no prefix length")
    return int(text)


def _text(value: Any, *, without: str) -> str:
    if not isinstance(value, str) or without in value:
        raise ValueError(f"no text, or one with {without}")
    return value
