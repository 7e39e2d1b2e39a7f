"""The bounds of a subnet: which of its addresses can be given, and why the others cannot.

IPv4: the network and the broadcast address are never given, except in a /31 (RFC 3021) and a /32, which have none.
IPv6: the subnet-router anycast address (RFC 4291, section 2.6.1) is never given, except in a /127 (RFC 6164) and a
/128, which have none; there is no broadcast address.
"""

import ipaddress
from collections.abc import Mapping

import msgspec

from contrail_config.addressing.notation import parse_address
from contrail_config.objects import Subnet


class SubnetBounds(msgspec.Struct, frozen=True):
    """A subnet as ints: `first` to `last` inclusive; `reserved` are those never given, each with the reason."""

    cidr: str
    prefix_length: int
    first: int
    last: int
    gateway: str | None
    reserved: Mapping[int, str]

    def __contains__(self, address: int) -> bool:
        return self.first <= address <= self.last


def subnet_bounds(subnet: Subnet) -> SubnetBounds:
    """The bounds of a subnet; a gateway or an excluded address that lies elsewhere takes nothing from it.

    Raises ValueError for a CIDR with host bits set and for what is no CIDR or address.
    """
    network = ipaddress.ip_network(subnet.cidr)
    first, last = int(network.network_address), int(network.broadcast_address)
    reserved = {parse_address(address, family=network.version): "it is excluded" for address in subnet.excluded}
    reserved |= _unusable_ends(network)
    if subnet.gateway is not None:
        reserved[parse_address(subnet.gateway, family=network.version)] = "it is the gateway"
    return SubnetBounds(
        cidr=subnet.cidr,
        prefix_length=network.prefixlen,
        first=first,
        last=last,
        gateway=subnet.gateway,
        reserved={address: reason for address, reason in reserved.items() if first <= address <= last},
    )


def default_gateway(cidr: str) -> str | None:
    """The first usable address of a subnet; None if that would leave none to give (/32, /128)."""
    network = ipaddress.ip_network(cidr)
    if network.num_addresses == 1:
        return None
    return str(network[0] if _is_point_to_point(network) else network[1])


def _unusable_ends(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> dict[int, str]:
    if _is_point_to_point(network) or network.num_addresses == 1:
        return {}
    first = int(network.network_address)
    if network.version == 6:
        return {first: "it is the subnet-router anycast address"}
    return {first: "it is the network address", int(network.broadcast_address): "it is the broadcast address"}


def _is_point_to_point(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    return network.num_addresses == 2
