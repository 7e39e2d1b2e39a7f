"""The manager: reads events from a source of pods and networks, and reconciles the store with them.

Networks are reconciled before the pods that need them (rule 3): all of them before the pods of the first list, later
each NAD before the pods that name it. So one tenant's NADs delay no other pods. A NAD whose network has to go waits for
pods that were deleted before it and still hold addresses there. Once the source has listed everything, the store is
cleaned of what no longer exists.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry

from contrail_config.errors import StoreError
from contrail_config.kube.work_queue import WorkQueue
from contrail_config.objects import EventType, FqName, Refusal, VirtualMachine
from contrail_config.store import EventLog, Store
from manager.api.change_log import ChangeLog
from manager.api.change_publisher import ChangePublisher
from manager.api.node_table import NodeTable
from manager.api.queries import ManagerQueries
from manager.configuration import ManagerConfiguration
from manager.controller.default_mtu import DefaultMtu
from manager.controller.nad_controller import NadController
from manager.controller.namespace_networks import NamespaceNetworks
from manager.controller.network_table import FindNetwork, no_others
from manager.controller.node_problems import NodeProblems, describe_conflicts, describe_missing_modules
from manager.controller.pod_controller import PodController
from manager.controller.pod_reconciler import OnAssigned
from manager.controller.pod_record import PodRecord
from manager.controller.pod_writer import IsPlugged
from manager.controller.refusal_reporter import RefusalReporter
from manager.deletions import Deletion, Remaining, Removed, WatchDeletions, no_deletions
from manager.dependencies import Dependency, namespace_dependency
from manager.events import EventRecorder, Subject
from manager.mapping.catalogue import Catalogue
from manager.mapping.fq_names import pod_network_name
from manager.mapping.virtual_machine import pod_network_uuid
from manager.mapping.virtual_network import pod_network
from manager.metrics import ManagerMetrics
from manager.network_metrics import NetworkAddresses
from manager.parsing.namespace_settings import NAMESPACE_KEYS
from manager.reasons import Reason
from manager.source import Applied, Gone, Listed, Nad, Namespace, Pod, Problem, Source, SourceEvent

_MAX_QUEUED = 1024
"""Queued pods at which reading from the source pauses: a list of any length is then not held in memory twice."""

_RELEASE_ORPHANS = "orphaned addresses"


def _ignore_assigned(_vm: VirtualMachine, *, is_new: bool) -> None:
    """Default of `on_assigned`."""


async def run_until_first_ends(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Runs the coroutines in parallel until one of them ends, cancels the others, and raises what the first raised.

    The plain exception, not an ExceptionGroup: exit statuses are mapped from exception types.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
            # A task that fails also cancels this wait: the group handles that. A task that ends normally does not.
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None  # in order of failure: the others may follow from the first


class Manager:
    """Composed by the process; `run` once.

    `registry` receives its metrics. `is_plugged` says whether any port of a virtual machine is plugged on its node.
    `orphan_hold`: seconds for which addresses without a virtual machine, found at start, are held. More than zero where
    virtual machines may be deleted while no manager runs, since their ports may still be plugged.
    `on_assigned` is called with each pod's virtual machine once it is written. `watch_deletions`: deletions of virtual
    machines from the store. `find_network` is asked for networks that others made, when they are named. `clock` returns
    monotonic seconds. `queries` answers the read-only API, and `change_log` has the changes for those who watch it.
    `nodes` takes the reports of nodes.
    """

    def __init__(
        self,
        configuration: ManagerConfiguration,
        *,
        source: Source,
        store: Store,
        event_log: EventLog,
        registry: CollectorRegistry,
        is_plugged: IsPlugged,
        orphan_hold: float = 0.0,
        on_assigned: OnAssigned = _ignore_assigned,
        watch_deletions: WatchDeletions = no_deletions,
        find_network: FindNetwork = no_others,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.metrics = metrics = ManagerMetrics(registry)
        self._configuration = configuration
        self._source = source
        self._watch_deletions = watch_deletions
        self.catalogue = Catalogue()
        records: dict[str, PodRecord] = {}
        self.change_log = ChangeLog()
        self.nodes = NodeTable(self.change_log)
        self.queries = ManagerQueries(
            records,
            store,
            event_log,
            meta_plugin=configuration.meta_plugin,
            reports=self.nodes.reports,
            store_kind=configuration.store_kind,
        )
        self._changes = ChangePublisher(
            self.change_log, records=records, networks=self.catalogue.networks, view=self.queries.pod_view
        )
        self.recorder = EventRecorder(event_log, recorded=metrics.events, on_recorded=self._changes.event_recorded)
        self.default_mtu = DefaultMtu(self.recorder, spans_nodes=configuration.network_slices)
        self.nads = NadController(
            configuration=configuration,
            catalogue=self.catalogue,
            store=store,
            recorder=self.recorder,
            requeue_dependents=self._requeue_dependents,
            on_reconciled=self._networks_reconciled,
            pods_released=self._pods_released,
            namespace_network_deleted=self._namespace_network_deleted,
            network_changed=self._network_changed,
            find_network=find_network,
        )
        self.namespaces = NamespaceNetworks(
            configuration=configuration,
            catalogue=self.catalogue,
            networks=self.nads.networks,
            on_reconciled=self._networks_reconciled,
        )
        self.pods = PodController(
            records,
            configuration=configuration,
            catalogue=self.catalogue,
            store=store,
            recorder=self.recorder,
            observe_assignment=metrics.pod_seconds.observe,
            is_plugged=is_plugged,
            orphan_hold=orphan_hold,
            network_released=self.nads.networks.released,
            on_assigned=on_assigned,
            unreconciled_nads=self._unreconciled,
            look_for_network=self.nads.networks.look_for,
            default_mtu=self.default_mtu.of_node,
            observer=self._changes,
            clock=clock,
        )
        self.refusals = RefusalReporter(
            catalogue=self.catalogue,
            find_nad=self.nads.records.get,
            has_pods=self.pods.has_pods,
            recorder=self.recorder,
            clock=clock,
        )
        self.missing_modules = NodeProblems(self.recorder, Reason.KERNEL_MODULE_MISSING, describe_missing_modules)
        self.node_conflicts = NodeProblems(self.recorder, Reason.NODE_CONFLICT, describe_conflicts)
        self.pod_network_uuid = pod_network_uuid(configuration.cluster_name)
        self.spans_nodes = configuration.network_slices
        self.loaded = asyncio.Event()
        """Set once everything is allocated that virtual machines of the store have."""
        self._chores = WorkQueue(self._do_chore, limit=1, transient=StoreError)
        self._unready = "the source has not listed all pods and networks yet"
        metrics.watch_queue("pods", self.pods.queue)
        metrics.watch_queue("networks", self.nads.queue)
        metrics.watch_queue("namespaces", self.namespaces.queue)
        metrics.watch_queue("pending", self.pods.pending_queue)
        metrics.watch_pods(self.pods.records, clock=clock)
        metrics.watch_default_mtu(self.default_mtu.of_cluster)
        addresses = NetworkAddresses(
            self.catalogue.networks, self._interface_networks, first=pod_network_name(configuration.cluster_name)
        )
        metrics.watch_networks(self.catalogue.networks, addresses)
        metrics.watch_watches(self.change_log)
        metrics.watch_node_conflicts(self.node_conflicts)

    async def run(self) -> None:
        """Runs until it is cancelled or the source ends, and finishes the work in progress.

        Raises ConfigurationError if the store's contents do not allow the configuration, StoreError if the store cannot
        be read at start or watched, and whatever the source raises.
        """
        try:
            async with (
                self.nads.networks.load(pod_network(self._configuration)) as changes,
                self._watch_deletions() as deletions,
            ):
                self._changes.networks_loaded()
                await self.pods.load()
                self.loaded.set()
                networks = self.nads.networks.follow(changes)
                await run_until_first_ends(networks, self._follow_source(), self._follow_deletions(deletions))
        finally:
            await self._finish()

    async def idle(self) -> None:
        """Returns when nothing is left to do now, and all events are written; scheduled retries do not count."""
        queues = (
            self.namespaces.queue,
            *self.nads.queues,
            *self.pods.queues,
            self.refusals.queue,
            self.missing_modules.queue,
            self.node_conflicts.queue,
            self._chores,
            self.default_mtu.queue,
        )
        # Work in one queue may add keys to another, so an idle queue proves nothing until all are.
        while any(len(queue) for queue in queues):
            for queue in queues:
                await queue.idle()
        await self.recorder.flush()

    def readiness(self) -> list[str]:
        """Returns why it is not ready: every pod of the first list must have been tried once."""
        return [self._unready] if self._unready else []

    def unplugged(self, node: str, vmi_uuids: Iterable[str]) -> None:
        """Ends the holds of these interfaces' addresses, as far as they are the node's, which unplugged the ports."""
        self.pods.unplugged(node, vmi_uuids)

    def refused(self, node: str, refusals: Sequence[Refusal]) -> None:
        """Takes what a node reports that it does not connect or route, all of it each time."""
        self.refusals.reported(node, refusals)

    def network_spread(self, name: FqName, nodes: int) -> None:
        """Takes notice of a network that has pods on so many nodes that it should be routed by block."""
        self.nads.spread(name, nodes)

    def orphaned(self, vm: VirtualMachine) -> None:
        """Deletes a virtual machine whose pod does not exist."""
        self.pods.orphaned(vm)

    def _interface_networks(self) -> Iterator[tuple[str, ...]]:
        for record in self.pods.records.values():
            if record.assignment is not None:
                yield record.assignment.networks

    def _namespace_network_deleted(self, namespace: str) -> None:
        self.namespaces.deleted(namespace)

    def _network_changed(self, name: FqName) -> None:
        self._changes.network_changed(name)
        if name not in self.catalogue.networks:
            self.namespaces.network_gone(name)

    def _requeue_dependents(self, dependency: Dependency) -> None:
        self.pods.requeue_dependents(dependency)

    def _networks_reconciled(self, key: str) -> None:
        """Takes a NAD as `namespace/name`, or a namespace."""
        self.pods.nad_waits.reconciled(key)

    def _unreconciled(self, pod: Pod) -> list[str]:
        return [*self.nads.unreconciled(pod), *self.namespaces.unreconciled(pod.namespace)]

    async def _pods_released(self, network_uuid: str) -> None:
        await self.pods.released_in(network_uuid)

    async def _follow_source(self) -> None:
        async with self._source.events() as events:
            async for event in events:
                await self._handle(event)

    async def _follow_deletions(self, deletions: AsyncIterator[Deletion]) -> None:
        async for deletion in deletions:
            match deletion:
                case Removed():
                    await self.pods.queue.shorter_than(_MAX_QUEUED)
                    self.pods.removed(deletion)
                case Remaining():
                    self.pods.remaining(deletion.uuids)

    async def _handle(self, event: SourceEvent) -> None:
        match event:
            case Applied(object=Pod() as pod):
                if self._unready:
                    await self.namespaces.queue.idle()
                    await self.nads.queue.idle()  # rule 3; later the pod waits for the NADs that it names
                await self.pods.queue.shorter_than(_MAX_QUEUED)
                self.pods.apply(pod)
            case Gone(object=Pod() as pod):
                self.pods.gone(pod)
            case Applied(object=Nad() as nad):
                self.nads.apply(nad)
            case Gone(object=Nad() as nad):
                self.nads.gone(nad)
            case Applied(object=Namespace() as namespace) | Gone(object=Namespace() as namespace):
                self._handle_namespace(namespace, gone=isinstance(event, Gone))
            case Problem():
                subject = Subject(event.kind, event.namespace, event.name, event.uid)
                await self.recorder.record(subject, EventType.WARNING, event.reason, event.message)
            case Listed():
                await self._handle_listed(event)

    def _handle_namespace(self, namespace: Namespace, *, gone: bool) -> None:
        """Keeps only the annotations that count, and nothing of namespaces without them."""
        stated = {} if gone else namespace.annotations
        annotations = {key: stated[key] for key in NAMESPACE_KEYS if key in stated}
        is_changed = annotations != self.catalogue.namespaces.get(namespace.name, {})
        if annotations:
            self.catalogue.namespaces[namespace.name] = annotations
        else:
            self.catalogue.namespaces.pop(namespace.name, None)
        if is_changed or not annotations:  # the store may have the network of one that was isolated before the start
            self.namespaces.changed(namespace.name)
        if is_changed:  # else hundreds of waiting pods would be reconciled with every change of a label
            self.pods.requeue_dependents(namespace_dependency(namespace.name))

    async def _handle_listed(self, listed: Listed) -> None:
        if self._unready:
            await self.namespaces.queue.idle()
            await self.nads.queue.idle()
            await self.pods.queue.idle()
            self._unready = ""
            self.nads.begin_pacing()
            # In the background: it may read all virtual machines, and the source should not wait for that.
            self._chores.add(_RELEASE_ORPHANS)
        if listed.complete:
            self.pods.sweep()
            self.nads.sweep()
            self.namespaces.sweep()

    async def _do_chore(self, _chore: str) -> None:
        await self.pods.release_orphans()

    async def _finish(self) -> None:
        await self._chores.close()
        await self.namespaces.close()
        await self.nads.close()
        await self.pods.close()
        await self.refusals.close()
        await self.missing_modules.close()
        await self.node_conflicts.close()
        await self.default_mtu.close()
        await self.recorder.flush()  # after the work in progress, which records events
        self._changes.close()
