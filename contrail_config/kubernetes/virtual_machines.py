"""Virtual machines as objects, each in its pod's namespace with its pod's name.

A virtual machine is created by one write, and its name is the lock. If two managers create the one of the same pod, one
of them gets an error; it then adopts what the other one wrote instead of overwriting what it has never seen.

The location of each object and the uuids of its interfaces are cached for all virtual machines that this process wrote
or read; others are looked up. So addresses can still be released after the garbage collector deleted the object with
its pod, and an object whose write got no response is found. An entry stays until the virtual machine is deleted, or, if
it could not be written, until its addresses are released.

An agent watches the virtual machines with its node's label. The server has no index for labels (nor for
`selectableFields`, which only filter), and matches each change against each agent's watch, which takes 3 to 4 us as
measured by `scripts/bench --only watches`. With 100 pods created and deleted each second that is 0.4 cores for 500
nodes and 4 for 5,000, spread over the API servers. A watch of the node's pods, which has an index, and one request for
each virtual machine would take 0.1 to 0.2 cores for any number of nodes. But then every node would need permission to
read every pod of the cluster. Avoiding that permission is worth the cores: clusters reach such a rate only for moments,
and up to about two hundred nodes the label is cheaper anyway.
"""

import contextlib
from typing import NamedTuple

import msgspec

from contrail_config.errors import ConflictError, NotFoundError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeConflictError, KubeExistsError, KubeNotFoundError
from contrail_config.kube.selector import EVERYTHING, Selector
from contrail_config.kubernetes.kinds import (
    NODE_LABEL,
    UUID_LABEL,
    VIRTUAL_MACHINE_DOCUMENTS,
    VIRTUAL_MACHINES,
    VirtualMachineObject,
    node_label,
    replacement,
    virtual_machine_object,
)
from contrail_config.kubernetes.retry_on_conflict import retry_on_conflict
from contrail_config.objects import VirtualMachine, virtual_machine_name


class _Location(NamedTuple):
    """Where the object is, and the uuids of its interfaces. `confirmed`: it was read, or its write got a response."""

    namespace: str
    pod: str
    interfaces: tuple[str, ...]
    confirmed: bool


class VirtualMachineClient:
    """Virtual machines by uuid. All methods raise KubeError and StoreError."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._locations: dict[str, _Location] = {}
        self._owner_of: dict[str, str] = {}  # interface to virtual machine

    async def put(self, virtual_machine: VirtualMachine) -> None:
        """Creates or replaces the virtual machine.

        Raises ConflictError if another one has its location or its name, KubeNotFoundError if its namespace is gone.
        """
        self._check_location(virtual_machine)
        # Before the write: if its response is lost, `addresses_in_use` must find the object.
        if virtual_machine.uuid not in self._locations:
            self._remember(virtual_machine, confirmed=False)
        async for attempt in retry_on_conflict(f"virtual machine {virtual_machine.name}"):
            with attempt:
                await self._write(virtual_machine)
        self._remember(virtual_machine)

    async def get(self, uuid: str) -> VirtualMachine:
        """Returns the virtual machine. Raises NotFoundError."""
        found = await self._find(uuid)
        if found is None:
            raise NotFoundError(f"virtual machine {uuid}: not found")
        return found.spec

    async def all(self, *, node: str | None) -> list[VirtualMachine]:
        """Returns all virtual machines (of one node), sorted by name."""
        selector = EVERYTHING if node is None else node_selector(node)
        virtual_machines = [item.spec for item in await self._client.list_all(VIRTUAL_MACHINES, selector)]
        for virtual_machine in virtual_machines:
            self._remember(virtual_machine)
        return sorted(virtual_machines, key=lambda virtual_machine: virtual_machine.name)

    async def delete(self, uuid: str) -> tuple[str, ...]:
        """Deletes the virtual machine and returns the uuids of its interfaces. Idempotent until `forget`."""
        async for attempt in retry_on_conflict(f"virtual machine {uuid}"):
            with attempt:
                found = await self._find(uuid)
                if found is not None:
                    await self._delete(found)
        location = self._locations.get(uuid)
        return location.interfaces if location else ()

    def forget(self, uuid: str) -> None:
        """Removes the virtual machine from the cache, after its addresses were released."""
        location = self._locations.pop(uuid, None)
        for interface in location.interfaces if location else ():
            self._owner_of.pop(interface, None)

    async def addresses_in_use(self, owner: str) -> frozenset[str]:
        """Returns the addresses of the interface in its virtual machine, if that is cached and exists.

        A virtual machine that could not be written and does not exist is forgotten: nobody will delete it.
        """
        uuid = self._owner_of.get(owner)
        found = None if uuid is None else await self._find(uuid)
        if uuid is not None and found is None:
            self._forget_unconfirmed(uuid)
        interfaces = found.spec.interfaces if found else ()
        return frozenset(
            address.address for interface in interfaces if interface.uuid == owner for address in interface.addresses
        )

    def _forget_unconfirmed(self, uuid: str) -> None:
        location = self._locations.get(uuid)
        if location is not None and not location.confirmed:
            self.forget(uuid)

    def _check_location(self, wanted: VirtualMachine) -> None:
        location, pod = self._locations.get(wanted.uuid), f"{wanted.namespace}/{wanted.pod}"
        if location is not None and (location.namespace, location.pod) != (wanted.namespace, wanted.pod):
            raise ConflictError(f"virtual machine {wanted.uuid}: already exists as {location.namespace}/{location.pod}")
        if wanted.name != virtual_machine_name(wanted.cluster, wanted.namespace, wanted.pod):
            raise ConflictError(f"virtual machine {pod}: name {wanted.name} belongs to another pod")

    async def _write(self, virtual_machine: VirtualMachine) -> None:
        wanted = virtual_machine_object(virtual_machine)
        try:
            await self._client.create(VIRTUAL_MACHINES, wanted, namespace=virtual_machine.namespace)
        except KubeExistsError:
            await self._replace(virtual_machine, wanted)

    async def _replace(self, virtual_machine: VirtualMachine, wanted: VirtualMachineObject) -> None:
        """Replaces the existing virtual machine. Raises KubeConflictError also if it has been deleted."""
        name, namespace = virtual_machine.pod, virtual_machine.namespace
        try:
            found = await self._client.get(VIRTUAL_MACHINE_DOCUMENTS, name, namespace=namespace)
            existing = msgspec.convert(found.spec, VirtualMachine)
            self._check_existing(virtual_machine, existing)
            if existing != virtual_machine:
                await self._client.replace(VIRTUAL_MACHINES, name, replacement(found, wanted), namespace=namespace)
        except KubeNotFoundError as error:  # deleted since `create` failed: the next attempt creates it
            raise KubeConflictError(str(error)) from error

    def _check_existing(self, wanted: VirtualMachine, found: VirtualMachine) -> None:
        if found.uuid != wanted.uuid:
            raise ConflictError(f"virtual machine {found.name}: already exists with uuid {found.uuid}")
        location = self._locations.get(found.uuid)  # None if it was deleted meanwhile
        if (location is None or not location.confirmed) and found.interfaces != wanted.interfaces:
            self._remember(found)
            raise ConflictError(f"virtual machine {found.name}: already written by another manager")

    async def _delete(self, found: VirtualMachineObject) -> None:
        """Deletes the object if it still exists. Raises KubeConflictError if another one has its name by now."""
        spec = found.spec
        with contextlib.suppress(KubeNotFoundError):
            await self._client.delete(VIRTUAL_MACHINES, spec.pod, namespace=spec.namespace, uid=found.metadata.uid)

    async def _find(self, uuid: str) -> VirtualMachineObject | None:
        location = self._locations.get(uuid)
        if location is None:
            found = await self._client.list_all(VIRTUAL_MACHINES, Selector(labels=f"{UUID_LABEL}={uuid}"))
            for item in found:
                self._remember(item.spec)
            return found[0] if found else None
        try:
            item = await self._client.get(VIRTUAL_MACHINES, location.pod, namespace=location.namespace)
        except KubeNotFoundError:
            return None
        return item if item.spec.uuid == uuid else None  # a recreated pod has the same name

    def _remember(self, virtual_machine: VirtualMachine, *, confirmed: bool = True) -> None:
        interfaces = tuple(interface.uuid for interface in virtual_machine.interfaces)
        location = _Location(virtual_machine.namespace, virtual_machine.pod, interfaces, confirmed)
        self._locations[virtual_machine.uuid] = location
        for interface in interfaces:
            self._owner_of[interface] = virtual_machine.uuid


def node_selector(node: str) -> Selector:
    """Returns the selector of the virtual machines of one node."""
    return Selector(labels=f"{NODE_LABEL}={node_label(node)}")
