"""What a network's subnets can give: families, gateways, room, and why an address can never be had there.

A network may have a thousand subnets and a pod hundreds of interfaces in it, so what is asked for each interface, or
each address that it wishes, is remembered, or found without looking at each subnet.
"""

import ipaddress
from functools import lru_cache

from contrail_config.addressing.notation import family_of, parse_address
from contrail_config.addressing.subnet import subnet_bounds
from contrail_config.objects import Subnet, VirtualNetwork
from manager.parsing.cidr_table import CidrTable
from manager.parsing.quoting import summarized

bounds_of = lru_cache(maxsize=8192)(subnet_bounds)  # asked again for each pod

_NETWORKS = 1024  # of which answers are remembered
_TABLES = 128  # these are as large as their networks


def families(network: VirtualNetwork) -> tuple[int, ...]:
    """The families, 4 and 6, in which the network gives addresses: one of each to every interface."""
    return _families(network.subnets)


def gateway_families(network: VirtualNetwork) -> frozenset[int]:
    """The families in which subnets of the network have a gateway."""
    return _gateway_families(network.subnets)


def capacity(network: VirtualNetwork, *, family: int, enough: int) -> int:
    """Number of addresses of the family that the network can give; counted no further than to what is enough."""
    return _room(network.subnets, family, enough)


def address_problem(network: VirtualNetwork, address: str) -> str | None:
    """Why the network can never give the address; None if it can, taken now or not."""
    family = family_of(address)
    if family not in families(network):
        return f"the network has no IPv{family} subnet"
    subnet = _table(network.subnets).find(ipaddress.ip_address(address))
    if subnet is None:
        return _in_no_subnet(network)
    return bounds_of(subnet).never_given(parse_address(address, family=family))


def gateway_problem(network: VirtualNetwork, address: str) -> str | None:
    """Why the address cannot be a gateway of an interface in the network; None if it can.

    An address that is excluded or that is the gateway already is never given, and fits; the broadcast address does not.
    """
    subnet = _table(network.subnets).find(ipaddress.ip_address(address))
    if subnet is None:
        return _in_no_subnet(network)
    bare = bounds_of(Subnet(cidr=subnet.cidr, gateway=None))
    return bare.reserved.get(parse_address(address, family=family_of(address)))


def cidr_bounds(cidr: str) -> tuple[int, int]:
    """The bounds of a CIDR in canonical form, as ints."""
    address, _, length = cidr.partition("/")
    family = family_of(cidr)
    first = parse_address(address, family=family)
    return first, first + (1 << (32 if family == 4 else 128) - int(length)) - 1


def same_subnet(address: str, other: str, *, prefix_length: int) -> bool:
    """Whether both addresses lie in one subnet of that length."""
    return ipaddress.ip_address(other) in ipaddress.ip_network(f"{address}/{prefix_length}", strict=False)


def _in_no_subnet(network: VirtualNetwork) -> str:
    return f"it is in no subnet of the network ({summarized([subnet.cidr for subnet in network.subnets])})"


@lru_cache(maxsize=_NETWORKS)
def _families(subnets: tuple[Subnet, ...]) -> tuple[int, ...]:
    return tuple(sorted({family_of(subnet.cidr) for subnet in subnets}))


@lru_cache(maxsize=_NETWORKS)
def _gateway_families(subnets: tuple[Subnet, ...]) -> frozenset[int]:
    return frozenset(family_of(subnet.gateway) for subnet in subnets if subnet.gateway is not None)


@lru_cache(maxsize=_NETWORKS)
def _room(subnets: tuple[Subnet, ...], family: int, enough: int) -> int:
    counted = 0
    for subnet in subnets:
        if family_of(subnet.cidr) == family and counted < enough:
            counted += bounds_of(subnet).room
    return counted


@lru_cache(maxsize=_TABLES)
def _table(subnets: tuple[Subnet, ...]) -> CidrTable[Subnet]:
    table = CidrTable[Subnet]()
    for subnet in subnets:
        table.add(ipaddress.ip_network(subnet.cidr), subnet)
    return table
