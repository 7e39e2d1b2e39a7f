"""Pod controller: reconciles each pod with the store, again whenever a dependency of it appears.

Level-triggered: every event only queues the pod's key, so a burst of events costs one reconciliation, and a manager
that was killed at any moment is followed by one that continues: allocation is idempotent per interface, and a virtual
machine is written atomically.

Pods that are tried again, since they or what they wait for changed, are deferred: one change may concern thousands of
them, and a tenant may make such changes all the time. New pods of others are tried between them.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from contrail_config.errors import StoreError
from contrail_config.kube.work_queue import WorkQueue
from contrail_config.objects import VirtualMachine
from contrail_config.store import Store
from contrail_service.errors import ConfigurationError
from contrail_service.logs import log_context
from manager.configuration import ManagerConfiguration
from manager.controller.address_allocator import AddressAllocator
from manager.controller.claims import Claims
from manager.controller.held_ports import HeldPorts
from manager.controller.nad_waits import NadWaits
from manager.controller.orphaned_addresses import orphaned_interfaces
from manager.controller.pending_index import PendingIndex
from manager.controller.pending_reporter import PendingReporter
from manager.controller.pod_observer import PodObserver
from manager.controller.pod_reconciler import LookForNetwork, OnAssigned, PodReconciler, UnreconciledNads
from manager.controller.pod_record import UNTRIED, PodRecord, assignment_of
from manager.controller.pod_writer import IsPlugged, PodWriter, adopt_claims, describe_conflict
from manager.controller.static_pods import StaticPods
from manager.deletions import Removed
from manager.dependencies import Dependency, address_dependency
from manager.events import EventRecorder
from manager.mapping.annotations import with_network_annotations_only
from manager.mapping.catalogue import Catalogue
from manager.mapping.virtual_machine import WithReservations, pod_network_uuid, reserving_networks
from manager.source import Pod

log = logging.getLogger(__name__)

_CONCURRENCY = 128
"""Pods reconciled in parallel: enough for a store to fill its transactions."""

_RELEASE_BOUND = 5.0
"""Seconds for which a NAD waits for pods that were deleted before it."""


class PodController:
    """Follows pods; keeps their `records`, by `namespace/name`.

    `network_released` is called with the uuid of each network in which addresses were released. `orphan_hold`: seconds
    for which addresses without a virtual machine are held. `observe_assignment`, `unreconciled_nads`: PodReconciler.
    `default_mtu`: PodWriter. `observer` is called for every change.
    """

    def __init__(
        self,
        records: dict[str, PodRecord],
        *,
        configuration: ManagerConfiguration,
        catalogue: Catalogue,
        store: Store,
        recorder: EventRecorder,
        observe_assignment: Callable[[float], None],
        is_plugged: IsPlugged,
        orphan_hold: float,
        network_released: Callable[[str], None],
        on_assigned: OnAssigned,
        unreconciled_nads: UnreconciledNads,
        look_for_network: LookForNetwork,
        default_mtu: Callable[[str], int],
        observer: PodObserver,
        clock: Callable[[], float],
    ) -> None:
        self._observer = observer
        self.records = records
        self.queue = WorkQueue(self._reconcile, limit=_CONCURRENCY, transient=StoreError)
        self._hold_queue = WorkQueue(self._shorten_hold, limit=_CONCURRENCY, transient=StoreError)
        self._cluster = configuration.cluster_name
        self._foreign: dict[str, str] = {}  # clusters by uuid of virtual machine
        self._catalogue = catalogue
        self._store = store
        self._orphan_hold = orphan_hold
        self._network_released = network_released
        self._clock = clock
        self.pending = PendingIndex()
        self._pending_reporter = PendingReporter(store)
        self.nad_waits = NadWaits(self.queue.add)
        self.claims = Claims(self.requeue_dependents)
        self.held_ports = HeldPorts(clock)
        self._static_pods = StaticPods(reconcile_after=self.queue.add_after, is_plugged=is_plugged, clock=clock)
        self.allocator = AddressAllocator(store, requeue=self.queue.add, requeue_after=self.queue.add_after)
        self._reconciler = PodReconciler(
            configuration=configuration,
            catalogue=catalogue,
            recorder=recorder,
            observe_assignment=observe_assignment,
            pending=self.pending,
            pending_reporter=self._pending_reporter,
            allocator=self.allocator,
            static_pods=self._static_pods,
            unreconciled_nads=unreconciled_nads,
            look_for_network=look_for_network,
            nad_waits=self.nad_waits,
            writer=PodWriter(
                cluster=configuration.cluster_name,
                store=store,
                allocator=self.allocator,
                claims=self.claims,
                ports=self.held_ports,
                is_plugged=is_plugged,
                on_released=self._released,
                default_mtu=default_mtu,
            ),
            on_assigned=on_assigned,
            on_changed=observer.pod_changed,
            clock=clock,
        )

    @property
    def queues(self) -> tuple[WorkQueue[str] | WorkQueue[tuple[str, str]], ...]:
        """The work queues of what a pod needs."""
        return (self.queue, self._hold_queue)

    @property
    def pending_queue(self) -> WorkQueue[str]:
        """Pods whose stored reason to wait is written or deleted: best effort."""
        return self._pending_reporter.queue

    async def load(self) -> None:
        """Reads the virtual machines of this cluster from the store; those of other clusters are left alone."""
        vms = await self._store.recover_virtual_machines()
        self._foreign = {}
        for vm in vms:
            if vm.cluster == self._cluster:
                self._load(vm)
            elif not vm.is_pending:
                self._foreign[vm.uuid] = vm.cluster
        if self._foreign:
            log.warning("ignoring %d virtual machines of other clusters", len(self._foreign))
        # Before any pod is reconciled: otherwise a new pod could get an address that a running pod uses.
        for problem in await self._store.recover_addresses(WithReservations(vms)):
            log.error("two virtual machines with one address: %s", problem)
        await self._load_held_ports()

    def apply(self, pod: Pod) -> None:
        """Updates the pod to its current state.

        Raises ConfigurationError if its virtual machine is of another cluster: the pod may be running, so it must not
        get another list.
        """
        if pod.uid in self._foreign:
            problem = f"the virtual machine of pod {pod.key} belongs to cluster {self._foreign[pod.uid]!r}"
            raise ConfigurationError(f"cluster-name: cannot be {self._cluster!r}: {problem}")
        if pod.gone or pod.rejected:
            self.gone(pod)
            return
        key, pod = pod.key, with_network_annotations_only(pod)
        record = self.records.setdefault(key, PodRecord(None, first_seen=0.0))
        if record.pod != pod:
            if record.pod is None or record.pod.uid != pod.uid:  # another pod, whose events are its own
                record.first_seen = self._clock()
                record.outcome = UNTRIED
            record.pod, record.ended_uid = pod, None
            if record.assignment is None or record.assignment.uuid != pod.uid:
                self._observer.pod_changed(record, None)
            if record.outcome is UNTRIED:
                self.queue.add(key)
            else:
                self.queue.add_deferred(key)

    def gone(self, pod: Pod) -> None:
        """Removes a pod that was deleted or rejected, or has ended. A successor of the same name is left alone."""
        record = self.records.get(pod.key)
        if record is not None and (record.pod is None or record.pod.uid == pod.uid):
            self._observer.pod_gone(record)
            record.pod = None
            if pod.gone:  # not merely deleted: the sandbox is known to be removed
                record.ended_uid = pod.uid
            self.queue.add(pod.key)

    def removed(self, deletion: Removed) -> None:
        """Restores a deleted virtual machine if somebody else deleted it and its pod exists."""
        key = self._key_of(deletion)
        record = None if key is None else self.records.get(key)
        if key and record and record.assignment is not None and record.assignment.uuid == deletion.uuid:
            self._restore(key, record, deletion.last)

    def remaining(self, uuids: AbstractSet[str]) -> None:
        """Restores all virtual machines that are not among these: deleted, or not written yet."""
        for key, record in self.records.items():
            if record.assignment is not None and record.assignment.uuid not in uuids:
                self._restore(key, record)

    def orphaned(self, vm: VirtualMachine) -> None:
        """Deletes a virtual machine whose pod does not exist, unless it is known here."""
        if vm.cluster == self._cluster and self._load(vm):
            self.queue.add(f"{vm.namespace}/{vm.pod}")

    def sweep(self) -> None:
        """Releases what the store holds for pods that do not exist; to be called once the source listed everything."""
        for key, record in self.records.items():
            if record.pod is None:
                self.queue.add(key)

    async def release_orphans(self) -> None:
        """Releases orphaned addresses, with the queue paused: a pod in progress has addresses, but no VM yet."""
        async with self.queue.paused():
            orphans = await orphaned_interfaces(self._store, self.records.values())
            if orphans:
                log.info("releasing the addresses of %d interfaces without a virtual machine", len(orphans))
                await self._store.release(orphans, hold=self._orphan_hold)
                await self._load_held_ports()
        if orphans:
            self._released([network.uuid for network in self._catalogue.networks.values()])

    def requeue_dependents(self, dependency: Dependency) -> None:
        """Queues the pods that wait for this dependency."""
        for key in self.pending.waiting_for(dependency):
            self.queue.add_deferred(key)

    async def released_in(self, network_uuid: str) -> None:
        """Returns once the queued pods that hold addresses in the network are reconciled, or after a bound.

        Those that were deleted have released them then. This saves a warning and a retry only: what is released later
        is reported by `network_released`.
        """
        holders = [key for key in self.queue.keys if self._holds(key, network_uuid)]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_RELEASE_BOUND):
                await self.queue.processed(holders)

    def has_pods(self, node: str, network_uuid: str) -> bool:
        """Returns whether a node has a virtual machine with an interface in the network; reads all records."""
        assigned = (record.assignment for record in self.records.values())
        return any(each is not None and each.node == node and network_uuid in each.networks for each in assigned)

    def unplugged(self, node: str, vmi_uuids: Iterable[str]) -> None:
        """Shortens the holds of those of these interfaces that are the node's, which unplugged the ports."""
        for vmi_uuid in vmi_uuids:
            if key := self._static_pods.unplugged(node, vmi_uuid):
                self._sandbox_ended(key)
            if network_uuid := self.held_ports.pop(vmi_uuid, node=node):
                self._hold_queue.add((vmi_uuid, network_uuid))

    async def close(self) -> None:
        """Finishes the work in progress and starts no more."""
        await self.queue.close()
        await self._hold_queue.close()
        await self.pending_queue.close()

    def _holds(self, key: str, network_uuid: str) -> bool:
        record = self.records.get(key)
        return record is not None and record.assignment is not None and network_uuid in record.assignment.networks

    async def _load_held_ports(self) -> None:
        for vmi_uuid, held in (await self._store.held_owners()).items():
            self.held_ports.add([(vmi_uuid, held.network_uuid)], node=held.node)

    def _load(self, vm: VirtualMachine) -> bool:
        """Adds a virtual machine to the record of its pod's name; returns False if it is there or will be."""
        key = f"{vm.namespace}/{vm.pod}"
        record = self.records.setdefault(key, PodRecord(None, first_seen=self._clock()))
        if vm.is_pending:
            self._pending_reporter.load(key, vm)
            return True
        if vm.uuid in record.uuids:
            return False
        holder = key
        if record.assignment is None:
            record.set_assignment(vm)
            record.unverified = vm
            self._observer.assignment_changed(None, record.assignment)
        else:  # another one of the pod's name: a former leader wrote it too late, or a backup was restored
            other = assignment_of(vm)
            record.others = (*record.others, other)
            holder = other.holder
        for conflict in adopt_claims(self.claims, holder, vm):
            log.error("virtual machine %s: %s", vm.name, describe_conflict(conflict))
        for reserving in reserving_networks(vm):
            self.allocator.share(reserving, pod_network_uuid(vm.cluster))
        return True

    def _sandbox_ended(self, key: str) -> None:
        """Records that the sandbox of the last pod of this name is removed."""
        record = self.records[key]
        if record.pod is None and record.assignment is not None:
            record.ended_uid = record.assignment.uuid
            self.queue.add(key)

    def _key_of(self, deletion: Removed) -> str | None:
        """Returns the key of the pod; searched if the last state of its virtual machine is undecodable."""
        if deletion.last is not None:
            return f"{deletion.last.namespace}/{deletion.last.pod}"
        assigned = ((key, record.assignment) for key, record in self.records.items())
        return next((key for key, found in assigned if found is not None and found.uuid == deletion.uuid), None)

    def _restore(self, key: str, record: PodRecord, last: VirtualMachine | None = None) -> None:
        """Restores the virtual machine, in its last state if known, now or when its pod is applied."""
        record.deleted, record.unverified = last or record.unverified or record.deleted, None
        if record.pod is not None and record.assignment is not None and record.pod.uid == record.assignment.uuid:
            self.queue.add(key)

    async def _reconcile(self, key: str) -> None:
        record = self.records.get(key)
        if record is None:
            return
        before, began = record.assignment, self._clock()
        with log_context(pod=key):
            try:
                is_gone = await self._reconciler.reconcile(key, record)
            except StoreError as error:
                await self._reconciler.report_failure(key, record, error, began=began)
                raise  # the work queue retries with back-off
            finally:
                if record.assignment is not before:
                    self._observer.assignment_changed(before, record.assignment)
            record.failures = 0
            if is_gone:
                del self.records[key]

    async def _shorten_hold(self, port: tuple[str, str]) -> None:
        vmi_uuid, network_uuid = port
        await self._store.shorten_holds([vmi_uuid])
        self._released([network_uuid])

    def _released(self, networks: Iterable[str]) -> None:
        for network_uuid in networks:
            # A retired network may be deletable now. The allocator requeues one pod per network, in order of arrival;
            # all pods that request a certain address are requeued, since only the store knows which are free.
            self._network_released(network_uuid)
            self.allocator.released(network_uuid)
            self.requeue_dependents(address_dependency(self.allocator.pool_of(network_uuid)))
