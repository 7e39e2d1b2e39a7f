"""Subnets of networks and IPAMs: defaults, validation, and what may change."""

import ipaddress
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.support.contrail_api.api_errors import ApiError
from tests.support.contrail_api.stored import Object

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


class Range(NamedTuple):
    """First and last address, as numbers."""

    first: int
    last: int


class SubnetRecord(NamedTuple):
    """A subnet as the allocator uses it; `gateway` and `dns` are None if it has none.

    `owner` is the name of the network or IPAM that holds it, joined by colons.
    """

    owner: str
    network: IpNetwork
    uuid: str
    gateway: int | None
    dns: int | None
    ascending: bool
    pools: tuple[Range, ...]

    @property
    def cidr(self) -> str:
        return str(self.network)

    @property
    def family(self) -> str:
        return f"v{self.network.version}"

    def is_reserved(self, address: int) -> bool:
        """Whether nobody can get the address: the first, the last and that of the DNS server."""
        return address in (int(self.network.network_address), int(self.network.broadcast_address), self.dns)

    def automatic(self) -> Iterator[int]:
        """Addresses in the order of automatic allocation, also reserved and allocated ones."""
        for pool in self.pools or (Range(int(self.network.network_address), int(self.network.broadcast_address)),):
            numbers = range(pool.first, pool.last + 1)
            yield from numbers if self.ascending else reversed(numbers)


def parse(subnet: Object, owner: str) -> SubnetRecord:
    """Returns the record of a stored subnet."""
    network = ipaddress.ip_network(_cidr(subnet))
    pools = tuple(
        Range(int(ipaddress.ip_address(pool["start"])), int(ipaddress.ip_address(pool["end"])))
        for pool in subnet.get("allocation_pools") or []
    )
    return SubnetRecord(
        owner,
        network,
        subnet["subnet_uuid"],
        _number(subnet["default_gateway"]),
        _number(subnet["dns_server_address"]),
        bool(subnet.get("addr_from_start")),
        pools,
    )


def completed(subnets: list[Object], owner: str) -> list[Object]:
    """Returns the subnets of a request with defaults. `owner` is the network's name. Raises ApiError."""
    done = [_complete(subnet, owner) for subnet in subnets]
    networks = [ipaddress.ip_network(_cidr(subnet)) for subnet in done]
    for position, one in enumerate(networks):
        if any(one.version == other.version and one.overlaps(other) for other in networks[:position]):
            raise ApiError(400, f"Overlapping addresses: {[str(network) for network in networks]}")
    return done


def _complete(subnet: Object, owner: str) -> Object:
    given = subnet.get("subnet") or {}
    text = f"{given.get('ip_prefix')}/{given.get('ip_prefix_len')}"
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise ApiError(400, f"Invalid subnet: Subnet type '{text}' is invalid") from error
    if network.max_prefixlen - network.prefixlen < 2:
        where = f"Virtual-Network({owner}:{network})"
        raise ApiError(
            500, f"{where} has invalid alloc_unit(1) in subnet({network}) reason: Pool range<=block_alloc_unit"
        )
    ascending = bool(subnet.get("addr_from_start"))
    first, last = int(network.network_address), int(network.broadcast_address)
    gateway = subnet.get("default_gateway") or _text(network, first + 1 if ascending else last - 1)
    dns = subnet.get("dns_server_address") or _text(network, first + 2 if ascending else last - 2)
    _check_gateway(gateway, network)
    _check_pools(subnet.get("allocation_pools") or [], network)
    return {
        **subnet,
        "subnet": {"ip_prefix": str(network.network_address), "ip_prefix_len": network.prefixlen},
        "subnet_uuid": subnet.get("subnet_uuid") or str(uuid.uuid4()),
        "default_gateway": gateway,
        "dns_server_address": dns,
    }


def _check_gateway(text: str, network: IpNetwork) -> None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise ApiError(409, f"Invalid gateway Ip address:{text}") from error
    if int(address) and address not in network:
        raise ApiError(409, f"gateway Ip {text} out of cidr: {network}")


def _check_pools(pools: list[Object], network: IpNetwork) -> None:
    for pool in pools:
        if any(ipaddress.ip_address(pool[end]) not in network for end in ("start", "end")):
            raise ApiError(409, f"allocation pool {pool} out of cidr: {network}")


def _cidr(subnet: Object) -> str:
    return f"{subnet['subnet']['ip_prefix']}/{subnet['subnet']['ip_prefix_len']}"


def _text(network: IpNetwork, number: int) -> str:
    kind: Any = ipaddress.IPv4Address if network.version == 4 else ipaddress.IPv6Address
    return str(kind(number))


def _number(text: str) -> int | None:
    """Returns an address as a number; that of all zeros means none."""
    return int(ipaddress.ip_address(text)) or None
