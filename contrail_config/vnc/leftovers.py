"""Leftovers of a killed writer: virtual machines that were being deleted or never committed."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from contrail_config.store import DEFAULT_HOLD
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncInUseError, VncNotFoundError, VncServerError
from contrail_config.vnc.holds import Clock
from contrail_config.vnc.keyed_locks import KeyedLocks
from contrail_config.vnc.machine_writer import MachineWriter
from contrail_config.vnc.mapping import machines
from contrail_config.vnc.store_errors import as_store_error

log = logging.getLogger(__name__)

Release = Callable[[Sequence[str], float], Awaitable[None]]
"""Releases the addresses of owners, and holds them until the end of a hold, in seconds since the epoch."""


class Leftovers:
    """Finds them on the server, when a writer starts, and deletes them. Those of other programs stay.

    `locks` are those of the writers, by the uuid of the virtual machine.
    """

    def __init__(
        self,
        client: VncClient,
        writer: MachineWriter,
        locks: KeyedLocks,
        *,
        cluster: str,
        release: Release,
        clock: Clock,
    ) -> None:
        self._client = client
        self._writer = writer
        self._locks = locks
        self._cluster = cluster
        self._release = release
        self._clock = clock

    async def finish(self) -> None:
        """Deletes them. Addresses of those that were never committed stay, and are released by the manager.

        One that another manager still writes, or deletes at the same time, is left to the repairs.
        """
        with as_store_error("leftovers of a killed writer"):
            for item in await self._client.list_all(machines.KIND, fields=machines.FIELDS):
                if machines.is_uncommitted(item, self._cluster):
                    try:
                        await self.delete(item["uuid"])
                    except (VncInUseError, VncNotFoundError, VncServerError) as error:
                        log.warning("virtual machine %s: cannot be deleted now: %s", item["fq_name"][-1], error)

    async def delete(self, uuid: str) -> None:
        """Deletes a virtual machine unless it is committed by now. Its addresses are held as its writer chose.

        Raises StoreError and VncError.
        """
        async with self._locks.held([uuid]):  # this process may be writing it
            for item in await self._client.list_by_uuid(machines.KIND, [uuid], fields=machines.FIELDS):
                if machines.is_uncommitted(item, self._cluster):
                    log.warning("virtual machine %s: never committed, deleting it", item["fq_name"][-1])
                    await self._delete(item)

    async def _delete(self, item: Mapping[str, Any]) -> None:
        ends = machines.hold_end(item)
        if ends is not None:
            # not less than usual: a vrouter may have served the interfaces until now
            await self._hold_addresses(item["uuid"], max(ends, self._clock() + DEFAULT_HOLD))
        await self._writer.remove_leftover(item["uuid"])

    async def _hold_addresses(self, uuid: str, ends: float) -> None:
        found = await self._client.list_referring(machines.INTERFACE, [uuid], fields=["annotations"])
        await self._release([interface["uuid"] for interface in found], ends)
