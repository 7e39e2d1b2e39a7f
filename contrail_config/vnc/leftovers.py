"""Leftovers of a killed writer: virtual machines that were being deleted or never committed."""

from contrail_config.vnc.client import VncClient
from contrail_config.vnc.machine_writer import MachineWriter
from contrail_config.vnc.mapping import machines
from contrail_config.vnc.store_errors import as_store_error


class Leftovers:
    """Finds them on the server, when a writer starts. Those of other programs stay."""

    def __init__(self, client: VncClient, writer: MachineWriter, cluster: str) -> None:
        self._client = client
        self._writer = writer
        self._cluster = cluster

    async def finish(self) -> None:
        """Deletes them. Their addresses have no virtual machine any more, and are released by the manager."""
        with as_store_error("leftovers of a killed writer"):
            for item in await self._client.list_all(machines.KIND, fields=machines.FIELDS):
                if machines.is_uncommitted(item, self._cluster):
                    await self._writer.remove_leftover(item["uuid"])
