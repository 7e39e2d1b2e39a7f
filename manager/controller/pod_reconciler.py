"""Pod reconciler: assigns a pod its list of interfaces, or reports what prevents it.

A reconciliation compares the pod as the source last sent it with what the store holds for its name, and removes the
difference; it can run at any time. An assignment is final: a virtual machine is written once, and a pod whose
annotations change later gets an event that its networks stay (rule 5). Until then annotations are read as they are, so
a waiting or refused pod can still be corrected. Only what belonged to an earlier uid is released.
"""

import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Protocol

from contrail_config.errors import NotFoundError, StoreError, StoreRejectedError
from contrail_config.objects import EventType, FqName, VirtualMachine, virtual_machine_name
from manager.api.types import PodState
from manager.configuration import ManagerConfiguration
from manager.controller.address_allocator import AddressAllocator
from manager.controller.nad_waits import NadWaits
from manager.controller.pending_index import PendingIndex
from manager.controller.pending_reporter import PendingReporter
from manager.controller.pod_record import EXCLUDED, HOST_NETWORK, READY, Assignment, Outcome, PodRecord
from manager.controller.pod_writer import PodWriter
from manager.controller.static_pods import StaticPods
from manager.dependencies import nad_dependency, namespace_dependency, network_dependency
from manager.events import EventRecorder, about_pod
from manager.mapping.catalogue import Catalogue
from manager.mapping.errors import MappingError, PodRefusedError, PodWaitsError
from manager.mapping.interface_names import sandbox_names
from manager.mapping.interface_resolution import ResolvedInterfaces, resolve_interfaces
from manager.mapping.primary_network import network_name
from manager.mapping.request_changes import describe_change
from manager.mapping.virtual_machine import build_pending_virtual_machine, summarize_virtual_machine
from manager.reasons import Reason
from manager.source import Pod

log = logging.getLogger(__name__)

_WITHOUT_INTERFACES = (PodState.WAITING, PodState.REFUSED)


FAILURES_UNTIL_REPORTED = 4
"""Consecutive errors of the store for one pod; if it answers at once, by then about a second has passed."""

SECONDS_UNTIL_REPORTED = 5.0
"""The same as time since the first of these attempts began: a store that hangs answers each only after many seconds."""


class OnAssigned(Protocol):
    """Callback for each pod's virtual machine once it is written."""

    def __call__(self, vm: VirtualMachine, /, *, is_new: bool) -> None:
        """The store holds it: written just now (`is_new`), or earlier; the latter may be called often."""


OnChanged = Callable[[PodRecord, VirtualMachine | None], None]
"""Called if a pod has another outcome or virtual machine; the latter is None if it has none."""

UnreconciledNads = Callable[[Pod], Collection[str]]
"""Returns the NADs that a pod names, as `namespace/name`, and its namespace, as far as they are queued."""


LookForNetwork = Callable[[FqName], Awaitable[None]]
"""Adds a network of others, which a pod or its namespace names, to the catalogue. Raises StoreError."""


class PodReconciler:
    """Reconciles one pod at a time.

    `observe_assignment` is called with the seconds from a pod's first event to its assignment; `clock` is monotonic.
    """

    def __init__(
        self,
        *,
        configuration: ManagerConfiguration,
        catalogue: Catalogue,
        recorder: EventRecorder,
        observe_assignment: Callable[[float], None],
        pending: PendingIndex,
        pending_reporter: PendingReporter,
        allocator: AddressAllocator,
        static_pods: StaticPods,
        unreconciled_nads: UnreconciledNads,
        look_for_network: LookForNetwork,
        nad_waits: NadWaits,
        writer: PodWriter,
        on_assigned: OnAssigned,
        on_changed: OnChanged,
        clock: Callable[[], float],
    ) -> None:
        self._configuration = configuration
        self._catalogue = catalogue
        self._recorder = recorder
        self._observe_assignment = observe_assignment
        self._pending = pending
        self._pending_reporter = pending_reporter
        self._allocator = allocator
        self._static_pods = static_pods
        self._unreconciled_nads = unreconciled_nads
        self._look_for_network = look_for_network
        self._nad_waits = nad_waits
        self._writer = writer
        self._on_assigned = on_assigned
        self._on_changed = on_changed
        self._clock = clock

    async def reconcile(self, key: str, record: PodRecord) -> bool:
        """Reconciles the pod of this name; returns whether it is gone and nothing is held for it."""
        # First, since everything below depends on whether the store holds something for the pod.
        await self._writer.adopt_unconfirmed(key, record)
        if record.others and record.pod is not None:
            self._writer.prefer(key, record, record.pod.uid)
        if self._static_pods.awaits_mirror(key, record):
            return False
        await self._writer.release_others(key, record)
        if record.assignment is not None and not self._is_assigned_to(record.pod, record):
            await self._writer.release(key, record)
        pod = record.pod
        if pod is None:
            await self._writer.release(key, record)
            self._pending.leave(key)
            self._pending_reporter.withdraw(key)
            self._allocator.leave(key)
            self._static_pods.forget(key)
            self._nad_waits.leave(key)
            return record.pod is None  # false if the source sent a successor during the release
        if pod.host_network:
            await self._conclude(key, record, pod, HOST_NETWORK)
        elif record.assignment is not None:
            await self._verify(key, record, record.assignment, pod)
        elif pod.excluded:
            await self._writer.release(key, record)  # what it was about to get
            self._nad_waits.leave(key)
            await self._conclude(key, record, pod, EXCLUDED)
        else:
            await self._assign(key, record, pod)
        return False

    async def report_failure(self, key: str, record: PodRecord, error: StoreError, *, began: float) -> None:
        """Records that the store rejects, or keeps failing for, a pod that should get interfaces and has none.

        As its outcome, and once as an event. `began`: when this attempt did, on the clock. The former outcome may be
        that of annotations, or of labels of its node, that were corrected since.
        """
        if record.failures == 0:
            record.failing_since = began
        record.failures += 1
        pod, before = record.pod, record.outcome
        if pod is None or pod.host_network or pod.excluded or before.state is PodState.READY:
            return
        if isinstance(error, StoreRejectedError):
            await self._conclude(key, record, pod, _refused(error))
            return
        is_brief = self._clock() - record.failing_since <= SECONDS_UNTIL_REPORTED
        if record.failures < FAILURES_UNTIL_REPORTED and is_brief:
            return
        record.outcome = Outcome(PodState.WAITING, Reason.STORE_FAILING, str(error), before.dependencies)
        if record.outcome != before:
            self._on_changed(record, None)
        self._report_pending(pod.key, pod, record.outcome)
        if before.reason is not Reason.STORE_FAILING:
            await self._recorder.record(about_pod(pod), EventType.WARNING, Reason.STORE_FAILING, str(error))

    def _is_assigned_to(self, pod: Pod | None, record: PodRecord) -> bool:
        """Whether the assignment is this pod's; one uid under two names is two pods."""
        return (
            pod is not None
            and not pod.host_network
            and record.assignment is not None
            and record.assignment.uuid == pod.uid
            and record.assignment.name
            == virtual_machine_name(self._configuration.cluster_name, pod.namespace, pod.name)
        )

    async def _assign(self, key: str, record: PodRecord, pod: Pod) -> None:
        if self._nad_waits.must_wait(key, partial(self._unreconciled_nads, pod)):
            return  # nothing is known to be wrong yet, so there is no outcome and no event
        was_assigned = record.assignment is not None
        await self._look_for_primary(pod)
        try:
            resolved = self._resolve(pod)
            vm = await self._writer.assign(key, pod, resolved, record)
        except MappingError as error:
            await self._defer(key, record, pod, error)
        except StoreRejectedError as error:
            await self._conclude(key, record, pod, _refused(error))
            raise  # the work queue retries with back-off
        else:
            if not was_assigned:
                self._observe_assignment(self._clock() - record.first_seen)
            self._on_assigned(vm, is_new=True)
            await self._conclude(key, record, pod, READY, vm, is_written=True)
            await self._report_assigned(pod, vm, resolved)

    async def _look_for_primary(self, pod: Pod) -> None:
        """Looks for the network of index 0 where only others can have made it."""
        with suppress(MappingError):  # reported when the pod is resolved
            name = network_name(pod, self._catalogue, self._configuration)
            if name not in self._catalogue.networks:
                await self._look_for_network(name)

    async def _defer(self, key: str, record: PodRecord, pod: Pod, error: MappingError) -> None:
        """Records why the pod has no virtual machine, and releases what other pods may need."""
        await self._writer.release_unconfirmed(record)
        if isinstance(error, PodWaitsError):
            # The namespace may select another network while the pod waits.
            dependencies = (*error.dependencies, namespace_dependency(pod.namespace))
            outcome = Outcome(PodState.WAITING, error.reason, str(error), tuple(dict.fromkeys(dependencies)))
        else:
            self._writer.release_claims(key)
            outcome = Outcome(PodState.REFUSED, error.reason, str(error))
        await self._conclude(key, record, pod, outcome)

    async def _verify(self, key: str, record: PodRecord, assignment: Assignment, pod: Pod) -> None:
        """Restores a deleted virtual machine, and reports networks changed since: the pod keeps those assigned."""
        try:
            vm = await self._writer.read_or_restore(record, assignment)
        except NotFoundError as error:
            log.warning("deleted by somebody else, assigning new interfaces: %s", error)
            await self._assign(key, record, pod)
            return
        is_moved = vm.node != pod.node
        if is_moved:
            vm = await self._writer.move(vm, pod.node)
            record.set_assignment(vm)
        self._on_assigned(vm, is_new=False)
        record.unverified = None
        outcome = READY
        if change := self._change(pod, vm):
            message = f"the networks of a pod cannot change after its creation: {change}"
            outcome = Outcome(PodState.READY, Reason.NETWORKS_CHANGED, message)
        await self._conclude(key, record, pod, outcome, vm, is_written=is_moved)

    def _change(self, pod: Pod, vm: VirtualMachine) -> str | None:
        """Returns what the pod requests now and does not have; None also if its own networks no longer exist."""
        first = vm.interfaces[0]
        try:
            # With its own first network as the fallback: a later selection by the namespace is no change of the pod.
            resolved = self._resolve(pod, fallback=first.network if first.nad is None else None)
            return describe_change(vm, resolved.interfaces)
        except PodRefusedError as error:
            return str(error)
        except PodWaitsError as error:
            own = {nad_dependency(interface.nad) for interface in vm.interfaces if interface.nad is not None}
            own |= {network_dependency(interface.network) for interface in vm.interfaces}
            return None if own.issuperset(error.dependencies) else str(error)

    def _resolve(self, pod: Pod, *, fallback: FqName | None = None) -> ResolvedInterfaces:
        return resolve_interfaces(pod, catalogue=self._catalogue, configuration=self._configuration, fallback=fallback)

    async def _conclude(
        self,
        key: str,
        record: PodRecord,
        pod: Pod,
        outcome: Outcome,
        vm: VirtualMachine | None = None,
        *,
        is_written: bool = False,
    ) -> None:
        """Records the outcome, and reports it as an event if it differs from the last one.

        `vm`: the pod's virtual machine; `is_written`: it was written just now.
        """
        self._pending.wait(key, outcome.dependencies)
        # A pod keeps its position in the queue for addresses only while that is what it waits for.
        if outcome.state is not PodState.WAITING or outcome.reason is not Reason.ADDRESSES_EXHAUSTED:
            self._allocator.leave(key)
        self._report_pending(key, pod, outcome)
        changed = outcome != record.outcome
        record.outcome = outcome
        if changed or is_written:
            self._on_changed(record, vm)
        if changed and outcome.reason is not None:
            log.info("%s: %s", outcome.reason, outcome.message)
            await self._recorder.record(about_pod(pod), EventType.WARNING, outcome.reason, outcome.message)

    def _report_pending(self, key: str, pod: Pod, outcome: Outcome) -> None:
        if outcome.state in _WITHOUT_INTERFACES and outcome.reason is not None:
            cluster = self._configuration.cluster_name
            pending = build_pending_virtual_machine(pod, outcome.reason, outcome.message, cluster=cluster)
            self._pending_reporter.report(key, pending)
        else:
            self._pending_reporter.withdraw(key, assigned=pod.uid if outcome.state is PodState.READY else None)

    async def _report_assigned(self, pod: Pod, vm: VirtualMachine, resolved: ResolvedInterfaces) -> None:
        names = sandbox_names(vm.interfaces, self._configuration.meta_plugin)
        message = summarize_virtual_machine(vm, names)
        log.info("assigned %s", message)
        await self._recorder.record(about_pod(pod), EventType.NORMAL, Reason.INTERFACES_ASSIGNED, message)
        for warning in resolved.warnings:
            await self._recorder.record(about_pod(pod), EventType.WARNING, warning.reason, warning.message)


def _refused(error: StoreRejectedError) -> Outcome:
    return Outcome(PodState.WAITING, Reason.WRITE_REFUSED, str(error))
