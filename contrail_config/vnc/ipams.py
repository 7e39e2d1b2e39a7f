"""IPAMs of networks that others made: flat-subnet ones have the subnets themselves."""

from collections.abc import Mapping
from typing import Any

from contrail_config.vnc.address_cache import AddressCache
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncNotFoundError
from contrail_config.vnc.mapping import networks
from contrail_config.vnc.mapping.subnets import flat_ranges


async def read_ipams(client: VncClient, network: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns the IPAMs to which a network of the server is linked, by uuid. Raises VncError."""
    links = network.get("network_ipam_refs") or ()
    return {link["uuid"]: await client.read(networks.IPAM, link["uuid"], fields=networks.IPAM_FIELDS) for link in links}


async def read_allocation_pools(client: VncClient, cache: AddressCache) -> None:
    """Has the cache know the allocation pools of flat-subnet IPAMs, each of which is read once. Raises VncError."""
    for uuid in cache.unread_ipams():
        try:
            item = await client.read(networks.IPAM, uuid, fields=networks.IPAM_FIELDS)
        except VncNotFoundError:
            continue
        cache.set_ranges(uuid, flat_ranges(item))
