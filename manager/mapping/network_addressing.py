"""Addressing facts of a network: families, gateways, capacity, and why an address can never be allocated there.

A network may have a thousand subnets and a pod hundreds of interfaces in it. So facts that are needed per interface or
per requested address are cached, or found without a scan of all subnets.
"""

import ipaddress
from functools import lru_cache

from contrail_config.addressing.notation import family_of, parse_address
from contrail_config.addressing.subnet import subnet_bounds
from contrail_config.objects import Subnet, VirtualNetwork
from manager.parsing.cidr_table import CidrTable
from manager.parsing.quoting import summarized

# Cache keys are subnets, or tuples of them: immutable, and shared by all pods of a network.
bounds_of = lru_cache(maxsize=8192)(subnet_bounds)  # needed again for each pod

_CACHED_NETWORKS = 1024
_CACHED_TABLES = 128  # a table is as large as its network


def families(network: VirtualNetwork) -> tuple[int, ...]:
    """Returns the address families, 4 and 6; every interface has one address of each."""
    return _families(network.subnets)


def gateway_families(network: VirtualNetwork) -> frozenset[int]:
    """Returns the address families in which a subnet of the network has a gateway."""
    return _gateway_families(network.subnets)


def capacity(network: VirtualNetwork, *, family: int, limit: int) -> int:
    """Returns the number of addresses of the family that can be allocated; counting stops at the limit."""
    return _capacity(network.subnets, family, limit)


def address_problem(network: VirtualNetwork, address: str) -> str | None:
    """Returns why the address can never be allocated; None if it can, even if it is in use now."""
    family = family_of(address)
    if family not in families(network):
        return f"the network has no IPv{family} subnet"
    subnet = _table(network.subnets).find(ipaddress.ip_address(address))
    if subnet is None:
        return _no_subnet(network)
    return bounds_of(subnet).unavailable_reason(parse_address(address, family=family))


def gateway_problem(network: VirtualNetwork, address: str) -> str | None:
    """Returns why the address cannot be the gateway of an interface in the network; None if it can.

    An excluded address and the subnet's own gateway are valid, the broadcast address is not.
    """
    subnet = _table(network.subnets).find(ipaddress.ip_address(address))
    if subnet is None:
        return _no_subnet(network)
    # Without the gateway: the requested one replaces it for this interface.
    bare = bounds_of(Subnet(cidr=subnet.cidr, gateway=None))
    return bare.reserved.get(parse_address(address, family=family_of(address)))


@lru_cache(maxsize=8192)
def cidr_bounds(cidr: str) -> tuple[int, int]:
    """Returns first and last address, as ints, of a CIDR in canonical form."""
    address, _, length = cidr.partition("/")
    family = family_of(cidr)
    first = parse_address(address, family=family)
    return first, first + (1 << (32 if family == 4 else 128) - int(length)) - 1


def same_subnet(address: str, other: str, *, prefix_length: int) -> bool:
    """Whether both addresses are in the same subnet of that prefix length."""
    return ipaddress.ip_address(other) in ipaddress.ip_network(f"{address}/{prefix_length}", strict=False)


def _no_subnet(network: VirtualNetwork) -> str:
    return f"it is not in a subnet of the network ({summarized([subnet.cidr for subnet in network.subnets])})"


@lru_cache(maxsize=_CACHED_NETWORKS)
def _families(subnets: tuple[Subnet, ...]) -> tuple[int, ...]:
    return tuple(sorted({family_of(subnet.cidr) for subnet in subnets}))


@lru_cache(maxsize=_CACHED_NETWORKS)
def _gateway_families(subnets: tuple[Subnet, ...]) -> frozenset[int]:
    return frozenset(family_of(subnet.gateway) for subnet in subnets if subnet.gateway is not None)


@lru_cache(maxsize=_CACHED_NETWORKS)
def _capacity(subnets: tuple[Subnet, ...], family: int, limit: int) -> int:
    counted = 0
    for subnet in subnets:
        # A /64 alone exceeds any limit, and a network may have a thousand subnets.
        if family_of(subnet.cidr) == family and counted < limit:
            counted += bounds_of(subnet).capacity
    return counted


@lru_cache(maxsize=_CACHED_TABLES)
def _table(subnets: tuple[Subnet, ...]) -> CidrTable[Subnet]:
    table = CidrTable[Subnet]()
    for subnet in subnets:
        table.add(ipaddress.ip_network(subnet.cidr), subnet)
    return table
