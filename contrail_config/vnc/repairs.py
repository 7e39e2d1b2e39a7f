"""Repairs of what two managers at once, or people, left on the server: compares all pods with it from time to time.

A server without transactions lets a race leave an interface in two networks, references to what is gone, and virtual
machines that nobody finishes. Interfaces are not watched, so one that somebody deletes is found here too.

What no virtual machine explains may be in the middle of a write: it is deleted only if the next round finds it again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from contrail_config.errors import StoreError
from contrail_config.objects import InterfaceAddress, VirtualMachine
from contrail_config.store import AddressRequest
from contrail_config.vnc.cache import Cache
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.dangling_references import DanglingReferences
from contrail_config.vnc.keyed_locks import KeyedLocks
from contrail_config.vnc.leftovers import Leftovers
from contrail_config.vnc.machine_writer import MachineWriter
from contrail_config.vnc.mapping import addresses, machines
from contrail_config.vnc.mapping.routers import KIND as ROUTER
from contrail_config.vnc.network_leftovers import NetworkLeftovers
from contrail_config.vnc.store_errors import as_store_error
from contrail_config.vnc.stray_addresses import StrayAddresses

log = logging.getLogger(__name__)

INTERVAL: Final = 600.0
"""Seconds between rounds."""

SECOND_LOOK: Final = 60.0
"""Seconds until the next round if something was found that may be in the middle of a write."""

Allocate = Callable[[Sequence[AddressRequest]], Awaitable[list[InterfaceAddress]]]


class Repairs:
    """Compares and repairs. `locks` are those of the writers, by the uuid of the virtual machine."""

    def __init__(
        self,
        client: VncClient,
        cache: Cache,
        writer: MachineWriter,
        locks: KeyedLocks,
        *,
        cluster: str,
        allocate: Allocate,
        leftovers: Leftovers,
        networks: NetworkLeftovers,
        strays: StrayAddresses,
    ) -> None:
        self._client = client
        self._cache = cache
        self._writer = writer
        self._locks = locks
        self._cluster = cluster
        self._allocate = allocate
        self._leftovers = leftovers
        self._networks = networks
        self._strays = strays
        self._suspects: set[str] = set()
        self.dangling = DanglingReferences(client)

    async def run(self) -> None:
        """Repairs until it is cancelled."""
        while True:
            try:
                await self.repair()
            except StoreError as error:
                log.warning("pods cannot be compared with the server: %s", error)
            await asyncio.sleep(SECOND_LOOK if self._has_suspects else INTERVAL)

    @property
    def _has_suspects(self) -> bool:
        others = (self.dangling, self._networks, self._strays)
        return bool(self._suspects) or any(each.has_suspects for each in others)

    async def repair(self) -> None:
        """Compares all pods once. Raises StoreError if the server cannot be read."""
        committed = list(self._cache.machines)  # before the lists: what they lack was written later
        with as_store_error("comparison of all pods"):
            stored = await self._client.list_all(machines.KIND, fields=machines.FIELDS)
            interfaces = await self._client.list_all(machines.INTERFACE, fields=machines.INTERFACE_FIELDS)
            listed = await self._client.list_all(addresses.KIND, fields=addresses.FIELDS)
        links = addresses.linked_interfaces(listed)
        found = {item["uuid"]: item for item in interfaces}
        for machine in committed:
            if self._cache.machines.get(machine.uuid) is machine and self._is_wrong(machine, found, links):
                await self._reported(machine.name, self._repair(machine.uuid))
        await self._delete_unexplained(stored, interfaces)
        with as_store_error("references to what is gone"):
            routers = await self._client.list_all(ROUTER, fields=["virtual_machine_refs"])
            existing = {item["uuid"] for item in stored}
            await self.dangling.remove(ROUTER, routers, target=machines.KIND, existing=existing)
            own = [item for item in listed if addresses.is_own(item, self._cluster)]
            await self.dangling.remove(addresses.KIND, own, target=machines.INTERFACE, existing=found)
        await self._strays.release()
        await self._networks.delete_hidden()
        await self._networks.delete_ipams()

    def _is_wrong(self, machine: VirtualMachine, found: Mapping[str, Any], links: Mapping[str, set[str]]) -> bool:
        return any(
            not machines.is_interface_of(found.get(interface.uuid), machine, interface)
            or {address.address for address in interface.addresses} - links.get(interface.uuid, set())
            for interface in machine.interfaces
            if self._cache.networks.get(interface.network_uuid) is not None
        )

    async def _repair(self, uuid: str) -> None:
        async with self._locks.held([uuid]):
            machine = self._cache.machines.get(uuid)
            if machine is None:
                return  # deleted meanwhile
            log.warning("virtual machine %s: repairing what is missing or wrong on the server", machine.name)
            await self._allocate_missing(machine)
            await self._writer.repair(machine)

    async def _allocate_missing(self, machine: VirtualMachine) -> None:
        """Claims addresses of the virtual machine that somebody deleted. Raises AddressUnavailableError."""
        requests = [
            AddressRequest(interface.network_uuid, address.family, interface.uuid, address.address, machine.node)
            for interface in machine.interfaces
            for address in interface.addresses
            if self._cache.networks.get(interface.network_uuid) is not None
        ]
        if requests:
            await self._allocate(requests)  # no effect for those that are there

    async def _delete_unexplained(
        self, stored: Sequence[Mapping[str, Any]], interfaces: Sequence[Mapping[str, Any]]
    ) -> None:
        """Deletes uncommitted virtual machines, and interfaces of none, that the round before found too."""
        known = {interface.uuid for machine in self._cache.machines for interface in machine.interfaces}
        uncommitted = {item["uuid"] for item in stored if machines.is_uncommitted(item, self._cluster)}
        lonely = {
            item["uuid"]: machines.machine_of(item)
            for item in interfaces
            if item["uuid"] not in known and machines.is_own_interface(item, self._cluster)
        }
        again, self._suspects = self._suspects, uncommitted.union(lonely)
        for uuid in uncommitted & again:
            await self._reported(uuid, self._delete_uncommitted(uuid))
        for uuid in again.intersection(lonely):
            await self._reported(uuid, self._delete_lonely(uuid, machine=lonely[uuid]))

    async def _delete_uncommitted(self, uuid: str) -> None:
        with as_store_error("virtual machine"):
            await self._leftovers.delete(uuid)

    async def _delete_lonely(self, uuid: str, *, machine: str) -> None:
        """Deletes an interface that refers to a virtual machine of which it is no part, or which is gone."""
        async with self._locks.held([machine]):
            found = self._cache.machines.get(machine)
            if found is None or all(interface.uuid != uuid for interface in found.interfaces):
                log.warning("interface %s: of no virtual machine, deleting it", uuid)
                with as_store_error("interface"):
                    await self._writer.remove_interface(uuid)

    async def _reported(self, what: str, repair: Awaitable[None]) -> None:
        try:
            await repair
        except StoreError as error:
            log.error("%s: cannot be repaired: %s", what, error)  # noqa: TRY400 - the message says what is wrong
