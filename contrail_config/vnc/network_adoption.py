"""Adoption of networks that others made under the name of one of ours, such as those of Contrail's kube-manager.

They keep uuid, subnets, gateways and IPAM. Only an annotation says that they are ours.
"""

from collections.abc import Mapping
from typing import Any

from contrail_config.errors import ConflictError
from contrail_config.objects import VirtualNetwork, pod_network_name
from contrail_config.stored_identity import has_equal_cidrs, with_stored_identity
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncNotFoundError
from contrail_config.vnc.ipams import read_ipams
from contrail_config.vnc.mapping import annotations, networks


class NetworkAdoption:
    """Finds networks of one cluster."""

    def __init__(self, client: VncClient, cluster: str) -> None:
        self._client = client
        self._cluster = cluster

    async def adopted(self, network: VirtualNetwork) -> VirtualNetwork:
        """Returns the network with the identity of the one of its name on the server; as it is if there is none.

        Raises ConflictError if that one cannot be used; VncError.
        """
        try:
            found = await self._client.find_uuid(networks.KIND, network.fq_name)
        except VncNotFoundError:
            return network
        if found == network.uuid:
            return network
        item = await self._client.read(networks.KIND, found, fields=networks.FIELDS)
        ipams = await read_ipams(self._client, item)
        stored = networks.adopted_network(item, nad=network.nad, ipams=ipams)
        if problem := self._problem(network, stored, item, ipams):
            raise ConflictError(f"network {network.name}: already exists with uuid {found}: {problem}")
        return with_stored_identity(network, stored)

    def _problem(
        self,
        network: VirtualNetwork,
        stored: VirtualNetwork,
        item: Mapping[str, Any],
        ipams: Mapping[str, Mapping[str, Any]],
    ) -> str | None:
        """Returns why the network cannot be used; None if it can."""
        cluster = annotations.from_object(item).get(annotations.CLUSTER, self._cluster)
        if cluster != self._cluster:
            return f"it is that of cluster {cluster}"
        is_flat = networks.has_flat_subnets(item.get("network_ipam_refs") or (), ipams)
        if is_flat and network.namespace is None and network.fq_name != pod_network_name(self._cluster):
            return "it has the subnets of the pod network, as that of an isolated namespace"
        if not has_equal_cidrs(network, stored):
            return f"it has the subnets {_cidrs(stored)}, not {_cidrs(network)}"
        return None


def _cidrs(network: VirtualNetwork) -> str:
    return ", ".join(sorted(subnet.cidr for subnet in network.subnets)) or "none"
