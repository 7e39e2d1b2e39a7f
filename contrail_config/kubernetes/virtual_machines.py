"""Machines as objects, each in its pod's namespace under its pod's name.

A machine is created by one write. Its name is the lock: of two managers that create the machine of one pod, one is
told so, and takes over what the other one wrote instead of replacing what it never saw.

Where the object of a uuid is, and whose interfaces it has, is known of all machines that this process wrote or read;
of others it is asked for. So an object that went without us (with its pod, by its owner reference) still tells whose
addresses are to be freed, and one whose write was not answered is found. It is known until it is deleted, or, if it
could not be written, until its addresses are released.

An agent watches the machines that bear its node's label. The server has no index for that (nor for `selectableFields`,
which filter alone), and holds each change against each agent's watch: that takes it 3 to 4 us, as
`scripts/bench --only watches` measures it. With 100 pods made and deleted each second that is 0.4 cores for 500 nodes
and 4 for 5,000, spread over the API servers. A watch of the node's pods, which has an index, and one request for each
machine would take 0.1 to 0.2, whatever the number of nodes. But every node would have to be allowed to read every pod
of the cluster, which is worth more than those cores at a rate that such clusters see for moments; and up to some two
hundred nodes the label is the cheaper way as well.
"""

import contextlib
from typing import NamedTuple

from contrail_config.errors import ConflictError, NotFoundError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeConflictError, KubeExistsError, KubeNotFoundError
from contrail_config.kube.selector import EVERYTHING, Selector
from contrail_config.kubernetes.kinds import (
    NODE_LABEL,
    UUID_LABEL,
    VIRTUAL_MACHINES,
    VirtualMachineObject,
    node_label,
    succeed,
    virtual_machine_object,
)
from contrail_config.kubernetes.retry_on_conflict import retry_on_conflict
from contrail_config.objects import VirtualMachine, virtual_machine_name


class _Known(NamedTuple):
    """Where a machine's object is, and the uuids of its interfaces; `sure`: it was answered or read."""

    namespace: str
    pod: str
    interfaces: tuple[str, ...]
    sure: bool


class VirtualMachineClient:
    """Machines by uuid. All methods raise KubeError and StoreError."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._known: dict[str, _Known] = {}
        self._bearers: dict[str, str] = {}  # machine of an interface

    async def put(self, machine: VirtualMachine) -> None:
        """Creates or replaces the machine.

        Raises ConflictError if another machine has its place or its name, KubeNotFoundError if its namespace is gone.
        """
        self._refuse_elsewhere(machine)
        if machine.uuid not in self._known:
            self._note(machine, sure=False)
        async for attempt in retry_on_conflict(f"machine {machine.name}"):
            with attempt:
                await self._write(machine)
        self._note(machine)

    async def get(self, uuid: str) -> VirtualMachine:
        """The machine. Raises NotFoundError."""
        found = await self._find(uuid)
        if found is None:
            raise NotFoundError(f"there is no machine {uuid}")
        return found.spec

    async def all(self, *, node: str | None) -> list[VirtualMachine]:
        """All machines, of one node if it is given, by name."""
        selection = EVERYTHING if node is None else of_node(node)
        machines = [item.spec for item in await self._client.list_all(VIRTUAL_MACHINES, selection)]
        for machine in machines:
            self._note(machine)
        return sorted(machines, key=lambda machine: machine.name)

    async def delete(self, uuid: str) -> tuple[str, ...]:
        """Deletes the machine if it is there, and returns the interfaces that it has or had: until `forget`."""
        async for attempt in retry_on_conflict(f"machine {uuid}"):
            with attempt:
                found = await self._find(uuid)
                if found is not None:
                    await self._delete(found)
        known = self._known.get(uuid)
        return known.interfaces if known else ()

    def forget(self, uuid: str) -> None:
        """What the machine had is freed."""
        known = self._known.pop(uuid, None)
        for interface in known.interfaces if known else ():
            self._bearers.pop(interface, None)

    async def borne(self, owner: str) -> frozenset[str]:
        """The addresses that the interface has in a machine that is there, as far as that one is known.

        A machine that could not be written, and is not there, is forgotten: nobody is going to delete it.
        """
        uuid = self._bearers.get(owner)
        found = None if uuid is None else await self._find(uuid)
        if uuid is not None and found is None:
            self._forget_unsure(uuid)
        interfaces = found.spec.interfaces if found else ()
        return frozenset(
            address.address for interface in interfaces if interface.uuid == owner for address in interface.addresses
        )

    def _forget_unsure(self, uuid: str) -> None:
        known = self._known.get(uuid)
        if known is not None and not known.sure:
            self.forget(uuid)

    def _refuse_elsewhere(self, machine: VirtualMachine) -> None:
        known, place = self._known.get(machine.uuid), f"{machine.namespace}/{machine.pod}"
        if known is not None and (known.namespace, known.pod) != (machine.namespace, machine.pod):
            raise ConflictError(f"machine {machine.uuid} is there already, as {known.namespace}/{known.pod}")
        if machine.name != virtual_machine_name(machine.cluster, machine.namespace, machine.pod):
            raise ConflictError(f"machine {place} cannot be named {machine.name}, as another pod's would be")

    async def _write(self, machine: VirtualMachine) -> None:
        wanted = virtual_machine_object(machine)
        try:
            await self._client.create(VIRTUAL_MACHINES, wanted, namespace=machine.namespace)
        except KubeExistsError:
            await self._take_over(machine, wanted)

    async def _take_over(self, machine: VirtualMachine, wanted: VirtualMachineObject) -> None:
        """Replaces the machine that is there. Raises KubeConflictError also if it is there no more."""
        try:
            found = await self._client.get(VIRTUAL_MACHINES, machine.pod, namespace=machine.namespace)
            self._refuse_other(machine, found.spec)
            if found.spec != machine:
                await self._client.replace(
                    VIRTUAL_MACHINES, machine.pod, succeed(found, wanted), namespace=machine.namespace
                )
        except KubeNotFoundError as error:
            raise KubeConflictError(str(error)) from error

    def _refuse_other(self, machine: VirtualMachine, found: VirtualMachine) -> None:
        if found.uuid != machine.uuid:
            raise ConflictError(f"machine {found.name} is there already, with uuid {found.uuid}")
        known = self._known.get(found.uuid)  # unless it was deleted meanwhile
        if (known is None or not known.sure) and found.interfaces != machine.interfaces:
            self._note(found)
            raise ConflictError(f"machine {found.name} is there already, as another manager wrote it")

    async def _delete(self, found: VirtualMachineObject) -> None:
        """Deletes the object if it still exists. Raises KubeConflictError if another one has its name by now."""
        spec = found.spec
        with contextlib.suppress(KubeNotFoundError):
            await self._client.delete(VIRTUAL_MACHINES, spec.pod, namespace=spec.namespace, uid=found.metadata.uid)

    async def _find(self, uuid: str) -> VirtualMachineObject | None:
        known = self._known.get(uuid)
        if known is None:
            found = await self._client.list_all(VIRTUAL_MACHINES, Selector(labels=f"{UUID_LABEL}={uuid}"))
            for item in found:
                self._note(item.spec)
            return found[0] if found else None
        try:
            item = await self._client.get(VIRTUAL_MACHINES, known.pod, namespace=known.namespace)
        except KubeNotFoundError:
            return None
        return item if item.spec.uuid == uuid else None

    def _note(self, machine: VirtualMachine, *, sure: bool = True) -> None:
        interfaces = tuple(interface.uuid for interface in machine.interfaces)
        self._known[machine.uuid] = _Known(machine.namespace, machine.pod, interfaces, sure)
        for interface in interfaces:
            self._bearers[interface] = machine.uuid


def of_node(node: str) -> Selector:
    """The machines of one node."""
    return Selector(labels=f"{NODE_LABEL}={node_label(node)}")
