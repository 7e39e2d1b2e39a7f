"""Subnets of a network as the attributes of its link to an IPAM, and back."""

import ipaddress
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from contrail_config.addressing.notation import family_of, parse_address
from contrail_config.addressing.pool import Range
from contrail_config.objects import Subnet

Ranges = Mapping[str, tuple[Range, ...]]
"""Allocation pools by CIDR of their subnet: addresses outside of them are given only to those who request them."""

_SUBNET_NAMESPACE: Final = uuid.UUID("d2a6c1f7-5a0e-4b59-8f3c-7e1b9d40a6c2")

FLAT: Final = "flat-subnet"
"""Method of IPAMs that have subnets themselves, such as that of the pod network of Contrail's kube-manager."""

_NO_GATEWAY: Final = {4: "0.0.0.0", 6: "::"}


def link_attributes(network_uuid: str, subnets: Sequence[Subnet]) -> dict[str, Any]:
    """Returns the attributes of a link. Equal subnets of a network have equal uuids, so that writing is idempotent."""
    return {"ipam_subnets": [_subnet(network_uuid, subnet) for subnet in subnets]}


def linked_subnets(links: Sequence[Mapping[str, Any]]) -> tuple[Subnet, ...]:
    """Returns the subnets of links to IPAMs, whoever made them; those of flat-subnet IPAMs are not in the links."""
    return tuple(_own_subnet(subnet) for subnet in _subnets_in(links))


def flat_subnets(ipam: Mapping[str, Any]) -> tuple[Subnet, ...]:
    """Returns the subnets of a flat-subnet IPAM, which each network that is linked to it has; none of another IPAM."""
    if ipam.get("ipam_subnet_method") != FLAT:
        return ()
    return tuple(_own_subnet(subnet) for subnet in (ipam.get("ipam_subnets") or {}).get("subnets") or [])


def linked_ranges(links: Sequence[Mapping[str, Any]]) -> Ranges:
    """Returns the allocation pools of subnets in links to IPAMs. Raises ValueError."""
    return _ranges(_subnets_in(links))


def flat_ranges(ipam: Mapping[str, Any]) -> Ranges:
    """Returns the allocation pools of the subnets of a flat-subnet IPAM. Raises ValueError."""
    return _ranges((ipam.get("ipam_subnets") or {}).get("subnets") or [])


def subnet_problem(subnet: Subnet) -> str | None:
    """Returns why the server cannot have a subnet; None if it can."""
    network = ipaddress.ip_network(subnet.cidr)
    if network.max_prefixlen - network.prefixlen < 2:
        return f"subnet {subnet.cidr}: a Contrail API server needs at least four addresses"
    if subnet.gateway is not None and ipaddress.ip_address(subnet.gateway) not in network:
        return f"subnet {subnet.cidr}: gateway {subnet.gateway} is outside of it"
    return None


def reserved_addresses(subnet: Subnet) -> tuple[str, ...]:
    """Returns the addresses that the server never gives, beside the gateway: the first and the last, also of IPv6."""
    network = ipaddress.ip_network(subnet.cidr)
    return str(network[0]), str(network[-1])


def _subnet(network_uuid: str, subnet: Subnet) -> dict[str, Any]:
    network = ipaddress.ip_network(subnet.cidr)
    gateway = subnet.gateway or _NO_GATEWAY[network.version]
    return {
        "subnet": {"ip_prefix": str(network.network_address), "ip_prefix_len": network.prefixlen},
        "default_gateway": gateway,
        "dns_server_address": gateway,  # the server reserves an address for it: one that is reserved already
        "addr_from_start": True,
        "subnet_uuid": str(uuid.uuid5(_SUBNET_NAMESPACE, f"{network_uuid}/{network}")),
    }


def _subnets_in(links: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for link in links:
        subnets = (link.get("attr") or {}).get("ipam_subnets") or []
        yield from (subnet for subnet in subnets if subnet.get("subnet"))


def _ranges(subnets: Iterable[Mapping[str, Any]]) -> Ranges:
    found: dict[str, tuple[Range, ...]] = {}
    for subnet in subnets:
        cidr = _own_subnet(subnet).cidr
        family = family_of(cidr)
        pools = tuple(
            (parse_address(pool["start"], family=family), parse_address(pool["end"], family=family))
            for pool in subnet.get("allocation_pools") or []
        )
        if pools:
            found[cidr] = pools
    return found


def _own_subnet(subnet: Mapping[str, Any]) -> Subnet:
    prefix = subnet["subnet"]
    network = ipaddress.ip_network(f"{prefix['ip_prefix']}/{prefix['ip_prefix_len']}", strict=False)
    gateway = subnet.get("default_gateway")
    return Subnet(str(network), None if gateway in (None, _NO_GATEWAY[network.version]) else gateway)
