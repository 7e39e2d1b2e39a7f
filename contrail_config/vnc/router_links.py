"""Missing references of virtual routers: those of nodes whose virtual router was provisioned after their pods.

Without such a reference the node's vrouter agent never receives the pod.
"""

import asyncio
import logging
from typing import Final, NoReturn

from contrail_config.errors import StoreError
from contrail_config.vnc.cache import Cache
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.keyed_locks import KeyedLocks
from contrail_config.vnc.mapping import machines
from contrail_config.vnc.mapping.routers import KIND
from contrail_config.vnc.store_errors import as_store_error
from contrail_config.vnc.virtual_routers import VirtualRouters

log = logging.getLogger(__name__)

INTERVAL: Final = 30.0
"""Seconds between searches, as long as nodes have no virtual router."""


class RouterLinks:
    """Adds missing references; `locks` are those of the writers, by the uuid of the virtual machine."""

    def __init__(
        self,
        client: VncClient,
        cache: Cache,
        routers: VirtualRouters,
        locks: KeyedLocks,
        *,
        interval: float = INTERVAL,
    ) -> None:
        self._client = client
        self._cache = cache
        self._routers = routers
        self._locks = locks
        self.interval = interval

    async def run(self) -> NoReturn:
        """Runs until it is cancelled: at once, for what an earlier writer could not link, and while nodes have none."""
        searches = True
        while True:
            if searches:
                try:
                    await self.add_missing()
                except StoreError as error:
                    log.warning("references of virtual routers cannot be completed: %s", error)
            await asyncio.sleep(self.interval)
            searches = self._routers.has_missing

    async def add_missing(self) -> None:
        """Adds all references that are missing. Raises StoreError."""
        with as_store_error("virtual routers"):
            listed = await self._client.list_all(KIND, fields=["virtual_machine_refs"])
            linked = {(item["uuid"], each["uuid"]) for item in listed for each in item.get("virtual_machine_refs", ())}
            for machine in self._cache.machines:
                if not machine.interfaces:
                    continue
                router = await self._routers.find(machine.node)
                if router is not None and (router, machine.uuid) not in linked:
                    await self._link(machine.uuid)

    async def _link(self, uuid: str) -> None:
        async with self._locks.held([uuid]):
            machine = self._cache.machines.get(uuid)
            if machine is not None and machine.interfaces:  # it may have been deleted meanwhile
                await self._routers.link(machine.node, machines.machine_reference(machine))
                log.info("virtual machine %s: linked to the virtual router of node %s", machine.name, machine.node)
