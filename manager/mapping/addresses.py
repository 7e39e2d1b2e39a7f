"""What a network's subnets can give: families, room, and why an address can never be had there."""

import ipaddress
from collections.abc import Mapping
from functools import lru_cache

from contrail_config.addressing.notation import family_of, parse_address
from contrail_config.addressing.subnet import SubnetBounds, subnet_bounds
from contrail_config.objects import Subnet, VirtualNetwork

bounds_of = lru_cache(maxsize=8192)(subnet_bounds)  # asked again for each pod


def families(network: VirtualNetwork) -> tuple[int, ...]:
    """The families, 4 and 6, in which the network gives addresses: one of each to every interface."""
    return tuple(_rooms(network.subnets))


def room(network: VirtualNetwork, *, family: int) -> int:
    """Number of addresses of the family that the network can give."""
    return _rooms(network.subnets).get(family, 0)


def never_given(network: VirtualNetwork, address: str) -> str | None:
    """Why the network can never give the address; None if it can, taken now or not."""
    family = family_of(address)
    if family not in families(network):
        return f"the network has no IPv{family} subnet"
    number = parse_address(address, family=family)
    for bounds in _bounds(network, family):
        if number in bounds:
            return bounds.never_given(number)
    return f"it is in no subnet of the network ({', '.join(subnet.cidr for subnet in network.subnets)})"


def unfit_gateway(network: VirtualNetwork, address: str) -> str | None:
    """Why the address cannot be a gateway of an interface in the network; None if it can.

    An address that is excluded or that is the gateway already is never given, and fits; the broadcast address does not.
    """
    family = family_of(address)
    number = parse_address(address, family=family)
    for subnet in network.subnets:
        if family_of(subnet.cidr) == family and number in bounds_of(subnet):
            bare = bounds_of(Subnet(cidr=subnet.cidr, gateway=None))
            return bare.reserved.get(number)
    return f"it is in no subnet of the network ({', '.join(subnet.cidr for subnet in network.subnets)})"


def same_subnet(address: str, other: str, *, prefix_length: int) -> bool:
    """Whether both addresses lie in one subnet of that length."""
    return ipaddress.ip_address(other) in ipaddress.ip_network(f"{address}/{prefix_length}", strict=False)


@lru_cache(maxsize=8192)
def _rooms(subnets: tuple[Subnet, ...]) -> Mapping[int, int]:
    """Number of addresses by family, 4 before 6."""
    rooms = dict.fromkeys(sorted({family_of(subnet.cidr) for subnet in subnets}), 0)
    for subnet in subnets:
        rooms[family_of(subnet.cidr)] += bounds_of(subnet).room
    return rooms


def _bounds(network: VirtualNetwork, family: int) -> list[SubnetBounds]:
    return [bounds_of(subnet) for subnet in network.subnets if family_of(subnet.cidr) == family]
