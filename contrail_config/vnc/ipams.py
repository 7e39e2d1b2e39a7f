"""IPAMs of networks that others made: flat-subnet ones have the subnets themselves."""

from collections.abc import Mapping
from typing import Any

from contrail_config.vnc.client import VncClient
from contrail_config.vnc.mapping import networks


async def read_ipams(client: VncClient, network: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns the IPAMs to which a network of the server is linked, by uuid. Raises VncError."""
    links = network.get("network_ipam_refs") or ()
    return {link["uuid"]: await client.read(networks.IPAM, link["uuid"], fields=networks.IPAM_FIELDS) for link in links}
