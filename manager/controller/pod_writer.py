"""Pod writer: writes a pod's virtual machine and addresses to the store, and releases them.

A write that failed may have taken effect, if only its answer was lost. A retry therefore requests the same addresses,
and first checks whether the virtual machine exists: an agent may have served it already, so it stays as it is.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from contrail_config.errors import AddressUnavailableError, ConflictError, ExhaustedError, NotFoundError
from contrail_config.objects import InterfaceAddress, VirtualMachine, interface_uuid
from contrail_config.store import DEFAULT_HOLD, UNPLUGGED_HOLD, AddressRequest, Store
from manager.controller.address_allocator import AddressAllocator
from manager.controller.claims import Claims, Conflict, MacRequest
from manager.controller.held_ports import HeldPorts
from manager.controller.pod_record import Assignment, PodRecord, UnconfirmedAssignment, assignment_of
from manager.dependencies import DependencyKind
from manager.mapping.errors import PodWaitsError
from manager.mapping.interface_resolution import ResolvedInterfaces
from manager.mapping.interface_spec import InterfaceSpec
from manager.mapping.virtual_machine import address_requests, build_virtual_machine, reserved_in
from manager.reasons import Reason
from manager.source import Pod

log = logging.getLogger(__name__)

IsPlugged = Callable[[str], bool]
"""Whether any port of the virtual machine of this uuid is plugged."""


class PodWriter:
    """`on_released` is called with the uuids of networks in which addresses were released.

    `default_mtu` returns the MTU of new pods on a node, in networks for which none is configured.
    """

    def __init__(
        self,
        *,
        cluster: str,
        store: Store,
        allocator: AddressAllocator,
        claims: Claims,
        ports: HeldPorts,
        is_plugged: IsPlugged,
        on_released: Callable[[Iterable[str]], None],
        default_mtu: Callable[[str], int],
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._allocator = allocator
        self._claims = claims
        self._ports = ports
        self._is_plugged = is_plugged
        self._on_released = on_released
        self._default_mtu = default_mtu

    async def assign(self, key: str, pod: Pod, resolved: ResolvedInterfaces, record: PodRecord) -> VirtualMachine:
        """Writes the pod's virtual machine and returns it. Raises PodRefusedError and PodWaitsError."""
        interfaces = self._claim(key, pod, resolved.interfaces)
        addresses = await self._allocate(key, pod, resolved, record)
        default_mtu = self._default_mtu(pod.node)
        vm = build_virtual_machine(pod, interfaces, addresses, cluster=self._cluster, default_mtu=default_mtu)
        # Before the write: it may take effect even if it fails.
        record.unconfirmed = record.unconfirmed and record.unconfirmed._replace(written=True)
        try:
            await self._store.put_virtual_machine(vm)
        except ConflictError as error:
            await self._find_other(record, error)
            raise
        record.unconfirmed = None
        record.set_assignment(vm)
        return vm

    async def adopt_unconfirmed(self, key: str, record: PodRecord) -> None:
        """Adopts the written virtual machine if it exists: the answer was lost, or another manager was first."""
        unconfirmed = record.unconfirmed
        if unconfirmed is None or not unconfirmed.written:
            return
        try:
            vm = await self._store.virtual_machine(unconfirmed.uuid)
        except NotFoundError:
            return
        existing = {interface.uuid for interface in vm.interfaces}
        # Another manager may have written fewer interfaces than this one allocated addresses for.
        await self._release({owner: uuid for owner, uuid in unconfirmed.owners.items() if owner not in existing})
        record.unconfirmed = None
        record.set_assignment(vm)
        record.unverified = vm
        for conflict in adopt_claims(self._claims, key, vm):
            log.error("virtual machine %s: %s", vm.name, describe_conflict(conflict))

    async def read_or_restore(self, record: PodRecord, assignment: Assignment) -> VirtualMachine:
        """Returns the pod's virtual machine, restored if somebody else deleted it.

        Raises NotFoundError if it is deleted and cannot be restored as it was.
        """
        deleted = record.deleted
        if deleted is None:
            return record.unverified or await self._store.virtual_machine(assignment.uuid)
        try:
            await self._restore(deleted)
        except (NotFoundError, ExhaustedError) as error:
            record.deleted = None
            raise NotFoundError(f"virtual machine {deleted.name}: cannot be restored: {error}") from error
        if record.deleted is deleted:  # otherwise it was deleted again in the meantime
            record.deleted = None
        log.warning("virtual machine %s: deleted by somebody else, restored", deleted.name)
        return deleted

    async def move(self, vm: VirtualMachine, node: str) -> VirtualMachine:
        """Moves the virtual machine to another node and returns it: the node of pods in manifests may be renamed."""
        moved = msgspec.structs.replace(vm, node=node)
        await self._store.put_virtual_machine(moved)
        log.info("virtual machine %s: moved from node %s to %s", moved.name, vm.node, node)
        return moved

    async def release(self, key: str, record: PodRecord) -> None:
        """Releases all that the store holds for the pod key. Idempotent."""
        if record.assignment is not None:
            await self._delete(record.assignment, sandbox_ended=record.ended_uid == record.assignment.uuid)
            record.assignment = record.unverified = record.deleted = None
        await self.release_unconfirmed(record)
        self._claims.release(key)

    def prefer(self, key: str, record: PodRecord, uuid: str) -> None:
        """Makes the other virtual machine of this uuid, if there is one, the pod's assignment, with its claims."""
        before = record.assignment
        record.prefer(uuid)
        if before is not None and record.assignment is not None and record.assignment is not before:
            self._claims.move(key, before.holder)
            self._claims.move(record.assignment.holder, key)

    async def release_others(self, key: str, record: PodRecord) -> None:
        """Releases the virtual machines of the pod's name that are not the pod's. Idempotent.

        One of them may have been loaded first and hold a MAC that the pod's own virtual machine has, too.
        """
        for other in record.others:
            log.warning("virtual machine %s: deleting the one of uuid %s: not its pod", other.name, other.uuid)
            await self._delete(other, sandbox_ended=False)
            own = await self._own(record)
            record.others = tuple(left for left in record.others if left is not other)
            self._claims.release(other.holder)
            if own is not None:  # before any other pod can claim what was released
                adopt_claims(self._claims, key, own)

    async def release_unconfirmed(self, record: PodRecord) -> None:
        """Releases the addresses of a virtual machine that was not written: never used, so without a hold."""
        if record.unconfirmed is not None:
            await self._release(record.unconfirmed.owners)
            record.unconfirmed = None

    def release_claims(self, key: str) -> None:
        """Releases what only one pod may have."""
        self._claims.release(key)

    async def _own(self, record: PodRecord) -> VirtualMachine | None:
        if record.assignment is not None:
            with contextlib.suppress(NotFoundError):  # deleted by somebody else, and restored later
                return await self._store.virtual_machine(record.assignment.uuid)
        return None

    async def _find_other(self, record: PodRecord, conflict: ConflictError) -> None:
        """Finds the virtual machine that has the pod's name, such as one of a backup: the next attempt deletes it."""
        known = {other.uuid for other in record.others}
        if conflict.holder is None or conflict.holder in known:
            return
        with contextlib.suppress(NotFoundError):  # deleted in the meantime
            record.others = (*record.others, assignment_of(await self._store.virtual_machine(conflict.holder)))

    async def _restore(self, vm: VirtualMachine) -> None:
        """Writes the virtual machine as it was, whatever changed in its networks.

        Raises NotFoundError and ExhaustedError.
        """
        # Somebody may have deleted them too: then they are allocated again, since the pod may be running with them.
        requests = [
            AddressRequest(one.network_uuid, each.family, one.uuid, each.address, vm.node, reserved_in(vm, one))
            for one in vm.interfaces
            for each in one.addresses
        ]
        try:
            await self._store.allocate(requests)
        except AddressUnavailableError as error:
            raise NotFoundError("its addresses now belong to another") from error
        await self._store.put_virtual_machine(vm)

    async def _allocate(
        self, key: str, pod: Pod, resolved: ResolvedInterfaces, record: PodRecord
    ) -> list[tuple[str, InterfaceAddress]]:
        """Allocates the addresses, the same ones where they may have been allocated before. Raises PodWaitsError."""
        requests = tuple(address_requests(pod, resolved.interfaces, cluster=self._cluster))
        before = record.unconfirmed
        if before is not None:
            # The annotations changed since: addresses that are no longer requested must not be kept.
            changed = [request for request in before.requests if request not in requests]
            await self._release({request.owner: request.network_uuid for request in changed})
        record.unconfirmed = UnconfirmedAssignment(pod.uid, requests)
        try:
            return await self._allocator.allocate(key, requests, resolved.interfaces)
        except PodWaitsError:
            if before is not None:  # the earlier allocation may have succeeded
                await self.release_unconfirmed(record)
            record.unconfirmed = None  # all or none: this one allocated nothing
            raise

    async def _release(self, owners: Mapping[str, str]) -> None:
        """Releases the addresses of these interfaces, each with the uuid of its network."""
        if owners:
            await self._store.release(list(owners), hold=0.0)
            self._on_released(set(owners.values()))

    async def _delete(self, assignment: Assignment, *, sandbox_ended: bool) -> None:
        hold = UNPLUGGED_HOLD if not sandbox_ended and self._is_plugged(assignment.uuid) else DEFAULT_HOLD
        await self._store.delete_virtual_machine(assignment.uuid, hold=hold)
        if hold == UNPLUGGED_HOLD:
            await self._await_unplugging(assignment)
        self._on_released(set(assignment.networks))

    async def _await_unplugging(self, assignment: Assignment) -> None:
        """Shortens the hold once the ports are unplugged, which may have happened during the deletion."""
        if self._is_plugged(assignment.uuid):
            ports = zip(assignment.interfaces, assignment.networks, strict=True)
            self._ports.add(ports, node=assignment.node)
        else:
            await self._store.shorten_holds(assignment.interfaces)

    def _claim(self, key: str, pod: Pod, specs: Sequence[InterfaceSpec]) -> list[InterfaceSpec]:
        """Claims what only one pod may have, and returns the specifications with their MACs. Raises PodWaitsError."""
        requests = [
            MacRequest(spec.network.uuid, interface_uuid(pod.uid, index), spec.mac) for index, spec in enumerate(specs)
        ]
        claimed = self._claims.claim(key, pod.uid, requests)
        if isinstance(claimed, Conflict):
            raise _taken(claimed, specs)
        return [msgspec.structs.replace(spec, mac=mac) for spec, mac in zip(specs, claimed, strict=True)]


def adopt_claims(claims: Claims, key: str, vm: VirtualMachine) -> list[Conflict]:
    """Claims for the pod what its virtual machine has; returns what others hold."""
    return claims.adopt(key, vm.uuid, [(interface.network_uuid, interface.mac) for interface in vm.interfaces])


def describe_conflict(conflict: Conflict) -> str:
    """Returns the conflict of an existing virtual machine as text."""
    kind, name = conflict.dependency
    return f"{kind} {name} is already used by pod {conflict.holder}"


def _taken(conflict: Conflict, specs: Sequence[InterfaceSpec]) -> PodWaitsError:
    dependency, holder = conflict
    if dependency.kind is DependencyKind.UID:
        return PodWaitsError(Reason.UID_TAKEN, f"uid {dependency.name} is already used by pod {holder}", dependency)
    network_uuid, mac = dependency.name.split()
    network = next(spec.network.name for spec in specs if spec.network.uuid == network_uuid)
    message = f"MAC {mac} in network {network} is already used by pod {holder}"
    return PodWaitsError(Reason.MAC_ADDRESS_TAKEN, message, dependency)
