"""Writes of virtual machines: the order in which nobody acts on half a pod.

Creation: the virtual machine without its commit marker, its interfaces, their addresses, the reference from the virtual
router, which has the vrouter agent receive all of them, and last the marker. Each step can be repeated, so the same
write after a kill continues where the first one ended. Deletion is the reverse: without marker first.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from contrail_config.errors import ConflictError
from contrail_config.objects import VirtualMachine, VirtualMachineInterface
from contrail_config.vnc.cache import Cache
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncExistsError, VncInUseError, VncNotFoundError
from contrail_config.vnc.mapping import addresses, annotations, machines
from contrail_config.vnc.network_writer import NetworkWriter
from contrail_config.vnc.reference import Reference
from contrail_config.vnc.store_errors import as_store_error
from contrail_config.vnc.virtual_routers import VirtualRouters

_LEFTOVER_FIELDS: Final = ("annotations", "virtual_machine_interface_back_refs", "virtual_router_back_refs")


class MachineWriter:
    """Writes virtual machines of one cluster. Callers hold the locks of uuid and name."""

    def __init__(self, client: VncClient, cache: Cache, networks: NetworkWriter, routers: VirtualRouters) -> None:
        self._client = client
        self._cache = cache
        self._networks = networks
        self._routers = routers

    async def put(self, machine: VirtualMachine) -> None:
        """Creates or replaces a virtual machine. Raises ConflictError, with its holder, if another has the name."""
        old = self._cache.machines.get(machine.uuid)
        if old == machine:
            return
        if old is not None and old.name != machine.name:
            raise ConflictError(f"virtual machine {machine.name}: already exists as {old.name}, and cannot be renamed")
        with as_store_error(f"virtual machine {machine.name}"):
            await self._create(machine)
            if old is None or old.interfaces != machine.interfaces or not await self._has_same_router(old, machine):
                await self._connect(machine, old)
            await self._commit(machine)

    async def delete(self, machine: VirtualMachine, *, until: float) -> None:
        """Deletes a virtual machine for our readers; `until` is when the holds of its addresses end."""
        with as_store_error(f"virtual machine {machine.name}"), contextlib.suppress(VncNotFoundError):
            deleting = {annotations.DELETING: f"{until:.3f}"}
            await self._client.set_annotations(machine.uuid, deleting, removed=[annotations.MACHINE])
        self._cache.machines.wrote(machine.uuid, None)

    async def disconnect(self, machine: VirtualMachine) -> None:
        """Removes the reference from the virtual router: the vrouter agent forgets the pod."""
        with as_store_error(f"virtual machine {machine.name}"):
            await self._routers.unlink(machine.node, machines.machine_reference(machine))

    async def remove(self, machine: VirtualMachine) -> None:
        """Deletes interfaces and virtual machine, whose addresses are unlinked."""
        with as_store_error(f"virtual machine {machine.name}"):
            await self._delete_interfaces(machine.interfaces)
            try:
                await self._client.delete(machines.KIND, machine.uuid)
            except VncInUseError:  # a virtual router that is not the node's any more, or an interface of a race
                await self.remove_leftover(machine.uuid)

    async def repair(self, machine: VirtualMachine) -> None:
        """Writes interfaces and references of a committed virtual machine that are missing or wrong on the server."""
        with as_store_error(f"virtual machine {machine.name}"):
            served = [each for each in machine.interfaces if self._cache.networks.get(each.network_uuid) is not None]
            listed = await self._client.list_by_uuid(
                machines.INTERFACE, [interface.uuid for interface in served], fields=machines.INTERFACE_FIELDS
            )
            found = {item["uuid"]: item for item in listed}
            wrong = [each for each in served if not machines.is_interface_of(found.get(each.uuid), machine, each)]
            target = machines.machine_reference(machine)
            if wrong:
                await self._routers.unlink(machine.node, target)
            for interface in wrong:
                await self.remove_interface(interface.uuid)
            await self._create_interfaces(machine, set(machine.interfaces).difference(wrong))
            await asyncio.gather(*(self._link_addresses(interface) for interface in served))
            await self._routers.link(machine.node, target)

    async def remove_interface(self, uuid: str) -> None:
        """Unlinks all addresses of an interface, and deletes it."""
        for linked in await self._client.list_referring(addresses.KIND, [uuid], fields=addresses.FIELDS):
            await self._client.remove_reference(addresses.KIND, linked["uuid"], Reference(machines.INTERFACE, uuid, ()))
        await self._delete_unlinked(uuid)

    async def remove_leftover(self, uuid: str) -> None:
        """Deletes what a killed writer left of a virtual machine. Addresses are unlinked, and stay."""
        item = await self._client.read(machines.KIND, uuid, fields=_LEFTOVER_FIELDS)
        target = Reference(machines.KIND, uuid, tuple(item["fq_name"]))
        for router in item.get("virtual_router_back_refs", ()):
            await self._client.remove_reference("virtual-router", router["uuid"], target)
        for interface in item.get("virtual_machine_interface_back_refs", ()):
            await self.remove_interface(interface["uuid"])
        await self._client.delete(machines.KIND, uuid)

    async def _create(self, machine: VirtualMachine) -> None:
        if self._cache.machines.get(machine.uuid) is not None:
            return
        try:
            await self._client.create(machines.KIND, machines.machine_body(machine))
        except VncExistsError:
            found = await self._holder(machine)
            if found != machine.uuid:
                problem = f"virtual machine {machine.name}: already exists with uuid {found}"
                raise ConflictError(problem, holder=found) from None
            await self._remove_different(machine)

    async def _remove_different(self, machine: VirtualMachine) -> None:
        """Deletes interfaces that an earlier write left, before it failed, and that are not as they are wanted now."""
        fields = machines.WRITTEN_FIELDS
        listed = await self._client.list_referring(machines.INTERFACE, [machine.uuid], fields=fields)
        wanted = {body["uuid"]: body for body in machines.interface_bodies(machine)}
        own = [item for item in listed if machines.is_own_interface(item, machine.cluster)]
        different = [item["uuid"] for item in own if not machines.is_as_wanted(item, wanted.get(item["uuid"]))]
        if different:
            await self._routers.unlink(machine.node, machines.machine_reference(machine))
            await asyncio.gather(*(self.remove_interface(uuid) for uuid in different))

    async def _holder(self, machine: VirtualMachine) -> str:
        """Returns the uuid that has the name. Raises ConflictError if the uuid belongs to another name instead."""
        try:
            return await self._client.find_uuid(machines.KIND, [machine.name])
        except VncNotFoundError:
            problem = f"virtual machine {machine.name}: its uuid {machine.uuid} belongs to an object of another name"
            raise ConflictError(problem) from None

    async def _has_same_router(self, old: VirtualMachine, machine: VirtualMachine) -> bool:
        """Whether the nodes of both have one virtual router, as a node has of which only the name differs."""
        if old.node == machine.node:
            return True
        router = await self._routers.find(machine.node)
        return router is not None and router == await self._routers.find(old.node)

    async def _connect(self, machine: VirtualMachine, old: VirtualMachine | None) -> None:
        """Writes interfaces and references. The vrouter agent does not see the virtual machine while they change."""
        target = machines.machine_reference(machine)
        kept = set[VirtualMachineInterface]()
        if old is not None:
            kept = machines.equal_interfaces(old, machine)
            await self._routers.unlink(old.node, target)
            await self._delete_interfaces([each for each in old.interfaces if each not in kept])
        await self._create_interfaces(machine, kept)
        await asyncio.gather(*(self._link_addresses(interface) for interface in machine.interfaces))
        if machine.interfaces:
            await self._routers.link(machine.node, target)

    async def _create_interfaces(self, machine: VirtualMachine, existing: set[VirtualMachineInterface]) -> None:
        """Creates what a vrouter can serve: interfaces whose network exists."""
        bodies = [
            body
            for interface, body in zip(machine.interfaces, machines.interface_bodies(machine), strict=True)
            if interface not in existing and self._cache.networks.get(interface.network_uuid) is not None
        ]
        if bodies:
            project = (machines.DOMAIN, machine.project)
            await self._networks.in_project(project, partial(self._create_each, bodies))

    async def _create_each(self, bodies: Sequence[dict[str, Any]]) -> None:
        await asyncio.gather(*(self._create_interface(body) for body in bodies))

    async def _create_interface(self, body: dict[str, Any]) -> None:
        with contextlib.suppress(VncExistsError):  # by the same write, before a kill or a lost answer
            await self._client.create(machines.INTERFACE, body)

    async def _link_addresses(self, interface: VirtualMachineInterface) -> None:
        if self._cache.networks.get(interface.network_uuid) is None:
            return
        target = Reference(machines.INTERFACE, interface.uuid, ())
        for record in self._cache.addresses.of_owner(interface.uuid):
            if record.held_until is None and record.network_uuid == interface.network_uuid:
                await self._client.add_reference(addresses.KIND, record.uuid, target)

    async def _delete_interfaces(self, interfaces: Sequence[VirtualMachineInterface]) -> None:
        await asyncio.gather(*(self._delete_interface(interface) for interface in interfaces))

    async def _delete_interface(self, interface: VirtualMachineInterface) -> None:
        target = Reference(machines.INTERFACE, interface.uuid, ())
        for record in self._cache.addresses.of_owner(interface.uuid):
            if record.held_until is None:
                with contextlib.suppress(VncNotFoundError):
                    await self._client.remove_reference(addresses.KIND, record.uuid, target)
        try:
            await self._client.delete(machines.INTERFACE, interface.uuid)
        except VncInUseError:  # an address that is not ours, or a floating IP
            await self.remove_interface(interface.uuid)

    async def _delete_unlinked(self, interface: str) -> None:
        """Deletes an interface without addresses, and removes it from floating IPs, such as those of services."""
        try:
            await self._client.delete(machines.INTERFACE, interface)
        except VncInUseError:
            item = await self._client.read(machines.INTERFACE, interface, fields=["floating_ip_back_refs"])
            for floating_ip in item.get("floating_ip_back_refs", ()):
                target = Reference(machines.INTERFACE, interface, ())
                await self._client.remove_reference("floating-ip", floating_ip["uuid"], target)
            await self._client.delete(machines.INTERFACE, interface)

    async def _commit(self, machine: VirtualMachine) -> None:
        stored = {}
        if self._cache.machines.get(machine.uuid) is not None:
            # read again: a newer release may have added fields since the cache was told
            item = await self._client.read(machines.KIND, machine.uuid, fields=machines.FIELDS)
            stored = annotations.json_in(item, annotations.MACHINE)
        marker = machines.machine_annotation(machine, stored)
        await self._client.set_annotations(machine.uuid, {annotations.MACHINE: marker}, removed=[annotations.DELETING])
        self._cache.machines.wrote(machine.uuid, machine)
