"""Virtual machines as objects, each named by its uuid, in the bucket of its node (see `node_buckets`).

A virtual machine is created by one write, and its uuid is the lock. If two managers create the one of the same pod, one
of them gets an error; it then adopts what the other one wrote instead of overwriting what it has never seen.

The name of a pod is unique among the cached virtual machines. Not guaranteed: that no other process stored one of the
same pod name and another uuid. `recover` returns both, and the manager deletes the one whose pod does not exist.

A virtual machine that changes its node may change its bucket. Its object is first rewritten where it is: from then on
the agent of the former node no longer serves it. Then it is created in the bucket of the new node, and deleted in the
former one. So it is never lost and never served twice; a move that was interrupted is finished by `recover`.
"""

import contextlib
import logging
from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from contrail_config.encoded_virtual_machines import EncodedVirtualMachines, encode_virtual_machine
from contrail_config.errors import ConflictError, NotFoundError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeConflictError, KubeExistsError, KubeNotFoundError
from contrail_config.kube.selector import EVERYTHING, Selector
from contrail_config.kubernetes.bucket_namespaces import create_in_bucket
from contrail_config.kubernetes.invalid_objects import MAX_REPORTED, InvalidObject, invalid_objects
from contrail_config.kubernetes.kinds import (
    NODE_LABEL,
    VIRTUAL_MACHINE_DOCUMENTS,
    VIRTUAL_MACHINES,
    Document,
    VirtualMachineObject,
    label_value,
    replacement,
    virtual_machine_object,
)
from contrail_config.kubernetes.network_numbers import NetworkNumbers
from contrail_config.kubernetes.node_buckets import is_node_bucket, node_bucket
from contrail_config.kubernetes.retry_on_conflict import retry_on_conflict
from contrail_config.kubernetes.validated import VALIDATED_VIRTUAL_MACHINES, valid_virtual_machine
from contrail_config.kubernetes.virtual_machine_locations import Location, VirtualMachineLocations
from contrail_config.objects import VirtualMachine, virtual_machine_name

log = logging.getLogger(__name__)

_MAX_NAMED: Final = 5
"""Objects that are named in a log line."""


def _encoded_in_place(
    item: VirtualMachineObject | UndecodableObject,
) -> bytes | VirtualMachineObject | UndecodableObject:
    """Returns the virtual machine alone, encoded, if the rest of its object follows from it."""
    if isinstance(item, UndecodableObject) or item.spec.is_pending or not (item.is_trusted and item.is_in_place):
        return item
    return encode_virtual_machine(item.spec)


class _Stored(NamedTuple):
    """Virtual machines in a list: complete ones, those of them that have an object in another bucket, pending ones."""

    complete: EncodedVirtualMachines
    moving: list[VirtualMachine]
    pending: list[VirtualMachine]


class VirtualMachineClient:
    """Virtual machines by uuid. All methods raise KubeError and StoreError."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.network_numbers = NetworkNumbers()
        self._locations = VirtualMachineLocations(self.network_numbers)
        self._listed = False
        self._ignored = set[str]()  # names of objects in the last list
        self._invalid = list[UndecodableObject]()  # in the last list, and since

    async def put(self, virtual_machine: VirtualMachine) -> None:
        """Creates or replaces the virtual machine, and creates its bucket if that is missing.

        Raises ConflictError if another one has its name, or if it has another name.
        """
        await self._check_name(virtual_machine)
        bucket = node_bucket(virtual_machine.node)
        # Before the write: if its response is lost, `addresses_in_use` must find the object.
        self._locations.expect(virtual_machine, bucket)
        async for attempt in retry_on_conflict(f"virtual machine {virtual_machine.name}"):
            with attempt:
                await self._write(virtual_machine)
        self._locations.set(virtual_machine, bucket)

    async def get(self, uuid: str) -> VirtualMachine:
        """Returns the virtual machine. Raises NotFoundError."""
        found = await self._find(uuid)
        if found is None:
            raise NotFoundError(f"virtual machine {uuid}: not found")
        return found.spec

    async def all(self, *, node: str | None) -> list[VirtualMachine]:
        """Returns all virtual machines (of one node) that are not pending, sorted by name."""
        return list((await self._read_all(EVERYTHING if node is None else node_selector(node))).complete)

    @property
    def invalid_objects(self) -> list[InvalidObject]:
        """The objects that the last list of all nodes skipped, and that were still invalid at the last check."""
        return invalid_objects(VALIDATED_VIRTUAL_MACHINES, self._invalid)

    async def check_invalid(self) -> None:
        """Reads the invalid objects again, as far as they are reported, and forgets those that are gone or valid."""
        for one in self._invalid[:MAX_REPORTED]:
            found = None
            with contextlib.suppress(KubeNotFoundError):
                found = await self._read(one.metadata.name, one.metadata.namespace)
            if found is None or valid_virtual_machine(found) is not None:
                self._invalid = [other for other in self._invalid if other is not one]

    async def recover(self) -> Iterable[VirtualMachine]:
        """Returns all virtual machines, also pending ones, after it has finished interrupted moves between buckets.

        They can be iterated any number of times.
        """
        stored = await self._read_all(EVERYTHING)
        for each in stored.moving:
            log.warning("virtual machine %s: finishing its move to node %s", each.name, each.node)
            await self.put(each)
        return stored.complete.with_others(stored.pending)

    async def ensure_listed(self) -> None:
        """Lists all virtual machines if that was never done, so that `network_numbers` has those of all of them."""
        if not self._listed:
            await self._read_all(EVERYTHING)

    async def delete(self, uuid: str) -> Location | None:
        """Deletes the virtual machine and returns where it was, if that is known. Idempotent until `forget`."""
        if self._locations.get(uuid) is None:
            await self._find(uuid)
        location = self._locations.get(uuid)
        async for attempt in retry_on_conflict(f"virtual machine {uuid}"):
            with attempt:
                for bucket in location.buckets if location else ():
                    await self._delete_from(bucket, uuid)
        return location

    def forget(self, uuid: str) -> None:
        """Removes the virtual machine from the cache, after its addresses were released."""
        self._locations.forget(uuid)

    def is_known(self, interface: str) -> bool:
        """Returns whether an interface belongs to a cached virtual machine that this process has not deleted."""
        return self._locations.owner(interface) is not None

    async def addresses_in_use(self, owner: str) -> frozenset[str]:
        """Returns the addresses of the interface in its virtual machine, if that is cached and exists.

        A virtual machine that could not be written and does not exist is forgotten: nobody will delete it.
        """
        uuid = self._locations.owner(owner)
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

    async def _check_name(self, wanted: VirtualMachine) -> None:
        location, pod = self._locations.get(wanted.uuid), f"{wanted.namespace}/{wanted.pod}"
        if wanted.name != virtual_machine_name(wanted.cluster, wanted.namespace, wanted.pod):
            raise ConflictError(f"virtual machine {pod}: name {wanted.name} belongs to another pod")
        if location is not None and location.name != wanted.name:
            raise ConflictError(f"virtual machine {wanted.uuid}: already exists as {location.name}")
        holder = self._locations.holder(wanted.name) or wanted.uuid
        if holder != wanted.uuid and await self._find(holder) is not None:
            problem = f"virtual machine {wanted.name}: already exists with uuid {holder}"
            raise ConflictError(problem, holder=holder)

    async def _write(self, virtual_machine: VirtualMachine) -> None:
        created: VirtualMachineObject | Document
        created = wanted = virtual_machine_object(virtual_machine)
        bucket, location = wanted.metadata.namespace, self._locations.get(virtual_machine.uuid)
        former = [each for each in (location.buckets if location else ()) if each != bucket]
        for each in former:
            rewritten = await self._rewrite(wanted, each)
            if rewritten is not None:
                created = msgspec.structs.replace(rewritten, metadata=wanted.metadata)
        try:
            await create_in_bucket(self._client, VIRTUAL_MACHINE_DOCUMENTS, created)
        except KubeExistsError:
            await self._replace(wanted)
        for each in former:
            await self._delete_from(each, virtual_machine.uuid)

    async def _replace(self, wanted: VirtualMachineObject) -> None:
        """Replaces the existing virtual machine. Raises KubeConflictError also if it has been deleted."""
        bucket = wanted.metadata.namespace
        try:
            found = await self._read(wanted.spec.uuid, bucket)
            existing = valid_virtual_machine(found)
            if existing is None:
                await self._delete_invalid(found)
                raise KubeConflictError(f"virtual machine {wanted.spec.name}: was invalid, and is created again")
            if not existing.is_pending:  # else its content is of no value
                self._check_existing(wanted.spec, existing, bucket)
            await self._update(found, existing, wanted)
        except KubeNotFoundError as error:  # deleted since `create` failed: the next attempt creates it
            raise KubeConflictError(str(error)) from error

    async def _rewrite(self, wanted: VirtualMachineObject, bucket: str) -> Document | None:
        """Rewrites the copy in the former bucket as one of the new node, so that nobody serves it; returns it."""
        with contextlib.suppress(KubeNotFoundError):
            found = await self._read(wanted.spec.uuid, bucket)
            if (existing := valid_virtual_machine(found)) is not None:
                return await self._update(found, existing, wanted)
            await self._delete_invalid(found)
        return None

    async def _delete_invalid(self, found: Document) -> None:
        """Deletes an invalid object: rules of the server may forbid to correct it, and its content is of no value."""
        metadata = found.metadata
        log.warning("virtual machine %s/%s: invalid: deleting it", metadata.namespace, metadata.name)
        version = metadata.resource_version
        await self._client.delete(
            VIRTUAL_MACHINES, metadata.name, namespace=metadata.namespace, resource_version=version
        )

    async def _update(self, found: Document, existing: VirtualMachine, wanted: VirtualMachineObject) -> Document:
        """Replaces the object unless it is as wanted, and returns it as stored."""
        if existing == wanted.spec:
            return found
        name, bucket = found.metadata.name, found.metadata.namespace
        return await self._client.replace(VIRTUAL_MACHINE_DOCUMENTS, name, replacement(found, wanted), namespace=bucket)

    async def _read(self, uuid: str, bucket: str) -> Document:
        return await self._client.get(VIRTUAL_MACHINE_DOCUMENTS, uuid, namespace=bucket)

    def _check_existing(self, wanted: VirtualMachine, found: VirtualMachine, bucket: str) -> None:
        location = self._locations.get(found.uuid)  # None if it was deleted meanwhile
        if (location is None or not location.confirmed) and found.interfaces != wanted.interfaces:
            self._locations.set(found, bucket)
            raise ConflictError(f"virtual machine {found.name}: already written by another manager")

    async def _delete_from(self, bucket: str, uuid: str) -> None:
        # No precondition: the object's name is the uuid, so no other virtual machine can have taken its place.
        with contextlib.suppress(KubeNotFoundError):
            await self._client.delete(VIRTUAL_MACHINES, uuid, namespace=bucket)

    async def _find(self, uuid: str) -> VirtualMachineObject | None:
        location = self._locations.get(uuid)
        if location is None:
            listed = await self._client.list_each(VALIDATED_VIRTUAL_MACHINES, Selector(fields=f"metadata.name={uuid}"))
            valid = (item for item in listed if not isinstance(item, UndecodableObject))
            found = [item for item in valid if item.is_trusted and not item.spec.is_pending]
            for item in found:
                self._locations.set(item.spec, *(each.metadata.namespace for each in found))
            return found[0] if found else None
        for bucket in location.buckets:
            with contextlib.suppress(KubeNotFoundError):
                document = await self._read(uuid, bucket)
                virtual_machine = valid_virtual_machine(document)
                if virtual_machine is not None and not virtual_machine.is_pending:
                    return VirtualMachineObject(document.metadata, virtual_machine)
        return None

    async def _read_all(self, selector: Selector) -> _Stored:
        """Returns what is stored, complete ones sorted by name."""
        encoded, moving = list[bytes](), defaultdict[str, list[VirtualMachineObject]](list)
        pending = list[VirtualMachine]()
        for item in await self._list(selector):
            if isinstance(item, bytes):
                encoded.append(item)
            elif item.spec.is_pending:
                pending.append(item.spec)
            else:
                moving[item.spec.uuid].append(item)
        names, moved = list[str](), dict[str, VirtualMachine]()
        for virtual_machine in EncodedVirtualMachines(encoded):
            self._locations.set(virtual_machine, node_bucket(virtual_machine.node))
            names.append(virtual_machine.name)
            if virtual_machine.uuid in moving:
                moved[virtual_machine.uuid] = virtual_machine
        for uuid, copies in moving.items():
            if uuid not in moved:
                moved[uuid] = copies[0].spec
                names.append(moved[uuid].name)
                encoded.append(encode_virtual_machine(moved[uuid]))
            buckets = (node_bucket(moved[uuid].node), *(copy.metadata.namespace for copy in copies))
            self._locations.set(moved[uuid], *buckets)
        self._listed = self._listed or selector is EVERYTHING
        by_name = sorted(range(len(names)), key=names.__getitem__)
        return _Stored(EncodedVirtualMachines([encoded[each] for each in by_name]), list(moved.values()), pending)

    async def _list(self, selector: Selector) -> list[bytes | VirtualMachineObject]:
        """Returns the virtual machines that managers wrote: encoded if they are complete and in place."""
        trusted, ignored = list[bytes | VirtualMachineObject](), set[str]()
        invalid = list[UndecodableObject]()
        for item in await self._client.list_kept(VALIDATED_VIRTUAL_MACHINES, _encoded_in_place, selector):
            if isinstance(item, UndecodableObject) and is_node_bucket(item.metadata.namespace):
                invalid.append(item)
            elif isinstance(item, bytes) or (isinstance(item, VirtualMachineObject) and item.is_trusted):
                trusted.append(item)
            else:
                ignored.add(f"{item.metadata.namespace}/{item.metadata.name}")
        if selector is EVERYTHING:
            self._log_ignored(ignored)
            self._invalid = invalid
        return trusted

    def _log_ignored(self, ignored: set[str]) -> None:
        """Logs a change of the virtual machines that are ignored, and not each list."""
        if ignored and ignored != self._ignored:
            some = ", ".join(sorted(ignored)[:_MAX_NAMED])
            log.warning("ignoring %d virtual machines that no manager wrote: %s", len(ignored), some)
        self._ignored = ignored


def node_selector(node: str) -> Selector:
    """Returns the selector of the virtual machines of one node."""
    return Selector(namespace=node_bucket(node), labels=f"{NODE_LABEL}={label_value(node)}")
