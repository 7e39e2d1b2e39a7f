"""Leftovers of a killed writer: virtual machines that were being deleted or never committed, and hidden networks."""

from contrail_config.vnc.client import VncClient
from contrail_config.vnc.machine_writer import MachineWriter
from contrail_config.vnc.mapping import annotations, machines, networks
from contrail_config.vnc.network_writer import NetworkWriter
from contrail_config.vnc.store_errors import as_store_error


class Leftovers:
    """Finds them on the server, when a writer starts. Those of other programs stay."""

    def __init__(self, client: VncClient, writer: MachineWriter, network_writer: NetworkWriter, cluster: str) -> None:
        self._client = client
        self._writer = writer
        self._networks = network_writer
        self._cluster = cluster

    async def finish(self) -> None:
        """Deletes them. Their addresses have no virtual machine any more, and are released by the manager."""
        with as_store_error("leftovers of a killed writer"):
            for item in await self._client.list_all(machines.KIND, fields=machines.FIELDS):
                if machines.is_uncommitted(item, self._cluster):
                    await self._writer.remove_leftover(item["uuid"])
            for item in await self._client.list_all(networks.KIND, fields=["annotations"]):
                pairs = annotations.from_object(item)
                if pairs.get(annotations.CLUSTER) == self._cluster and annotations.HIDDEN in pairs:
                    await self._networks.delete_hidden(item["uuid"])
