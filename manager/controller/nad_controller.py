"""NAD controller: reconciles each NAD with the store, and publishes to the catalogue which NADs pods can use."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from contrail_config.errors import StoreError
from contrail_config.kube.work_queue import WorkQueue
from contrail_config.objects import FqName, VirtualNetwork
from contrail_config.store import Store
from manager.configuration import ManagerConfiguration
from manager.controller.nad_pacing import NadPacing, counted_items
from manager.controller.nad_reconciler import NadReconciler
from manager.controller.nad_record import NadRecord
from manager.controller.network_dependents import NetworkDependents
from manager.controller.network_table import FindNetwork, NetworkTable
from manager.dependencies import Dependency, nad_dependency, network_dependency
from manager.events import EventRecorder
from manager.mapping.catalogue import Catalogue
from manager.mapping.fq_names import nad_of_network
from manager.mapping.named_nads import named_nads
from manager.source import Nad, Pod

log = logging.getLogger(__name__)

_CONCURRENCY = 16


class NadController:
    """Follows NADs; `requeue_dependents` queues the pods that wait for a dependency.

    `on_reconciled` is called with `namespace/name` after each reconciliation. `pods_released`: see NadReconciler.
    `namespace_network_deleted` is called with each namespace whose own network somebody deleted, `network_changed` with
    the name of each network that changed in any way.
    """

    def __init__(
        self,
        *,
        configuration: ManagerConfiguration,
        catalogue: Catalogue,
        store: Store,
        recorder: EventRecorder,
        requeue_dependents: Callable[[Dependency], None],
        on_reconciled: Callable[[str], None],
        pods_released: Callable[[str], Awaitable[None]],
        namespace_network_deleted: Callable[[str], None],
        network_changed: Callable[[FqName], None],
        find_network: FindNetwork,
    ) -> None:
        self._on_network_changed = network_changed
        self._namespace_network_deleted = namespace_network_deleted
        self.queue = WorkQueue(self._reconcile, limit=_CONCURRENCY, transient=StoreError)
        self._dangling = WorkQueue(self._report_dangling, limit=_CONCURRENCY)
        self.networks = NetworkTable(
            store,
            catalogue.networks,
            on_change=self._network_changed,
            on_deleted=self._network_deleted,
            find=find_network,
        )
        self._restores = WorkQueue(self.networks.restore_if_deleted, limit=1, transient=StoreError)
        self._reconciler = NadReconciler(
            configuration=configuration,
            catalogue=catalogue,
            networks=self.networks,
            recorder=recorder,
            check_reference=self._dangling.add,
            pods_released=pods_released,
        )
        self._configuration = configuration
        self._pacing = NadPacing()
        self._parsing = asyncio.Lock()
        self._is_paced = False
        self._default_mtu = configuration.network_mtu
        self._catalogue = catalogue
        self._requeue_dependents = requeue_dependents
        self._on_reconciled = on_reconciled
        self.records: dict[str, NadRecord] = {}
        self.ended: set[str] = set()  # deleted NADs that are not reconciled yet

    @property
    def queues(self) -> tuple[WorkQueue[str] | WorkQueue[FqName], ...]:
        """All work queues."""
        return (self.queue, self._dangling, self._restores)

    @property
    def dependents(self) -> NetworkDependents:
        """NADs that are queued when a certain network changes."""
        return self._reconciler.dependents

    def unreconciled(self, pod: Pod) -> list[str]:
        """Returns the NADs that the pod names, directly or by their networks, and that are queued."""
        if not len(self.queue):
            return []
        named = set(named_nads(pod, catalogue=self._catalogue, configuration=self._configuration))
        named.update([owner for key in named if (owner := self._referred(key)) is not None])
        return [key for key in sorted(named) if key in self.queue]

    def apply(self, nad: Nad) -> None:
        """Updates the NAD to its current state."""
        before = self.records.get(nad.key)
        # Every new list sends all NADs again; unchanged ones cost nothing.
        if before is None or before.nad != nad:
            ended = nad.key in self.ended
            self.records[nad.key] = NadRecord(nad, before, another_ended=ended, default_mtu=self._default_mtu)
            self._enqueue(nad)

    def gone(self, nad: Nad) -> None:
        """Removes a deleted NAD. A successor of the same name is left alone."""
        record = self.records.get(nad.key)
        if record is not None and record.nad.uid == nad.uid:
            del self.records[nad.key]
            self._catalogue.nads.pop(nad.key, None)
            self.ended.add(nad.key)
            self._enqueue(nad)

    def spread(self, name: FqName, nodes: int) -> None:
        """Takes notice that a network has pods on so many nodes that it should be routed, if its NAD permits that."""
        network = self._catalogue.networks.get(name)
        record = None if network is None or network.nad is None else self.records.get(network.nad)
        if network is None or record is None or record.states_forwarding_mode:
            return
        if self._reconciler.own_network(record.nad.key) is network and self._reconciler.spread.add(network, nodes):
            self.queue.add(record.nad.key)

    def sweep(self) -> None:
        """Retires networks of NADs that do not exist; to be called once the source has listed everything."""
        for network in self._catalogue.networks.values():
            key = network.nad  # None: the pod network, and networks of others
            if key is not None and key not in self.records and self._reconciler.own_network(key) == network:
                self.queue.add(key)

    async def close(self) -> None:
        """Finishes the work in progress and starts no more."""
        await self.queue.close()
        await self._dangling.close()
        await self._restores.close()

    def begin_pacing(self) -> None:
        """Delays NADs with long lists from now on; to be called once the first list is reconciled."""
        self._is_paced = True

    def _enqueue(self, nad: Nad) -> None:
        """Queues the NAD; with long lists it may be scheduled for later, once for all changes until then."""
        delay = 0.0
        if self._is_paced and counted_items(nad):
            if self.queue.is_waiting(nad.key):
                return
            delay = self._pacing.delay(nad)
        if delay:
            log.info("%s: has long lists, reconciling it in %.1f s", nad.key, delay)
            self.queue.add_after(nad.key, delay)
        else:
            self.queue.add(nad.key)

    async def _reconcile(self, key: str) -> None:
        try:
            await self._reconcile_once(key)
        finally:
            self._on_reconciled(key)  # after a failure too, which is retried later

    async def _reconcile_once(self, key: str) -> None:
        record = self.records.get(key)
        if record is None:
            await self._reconciler.end(key)
            self.ended.discard(key)
            return
        if counted_items(record.nad):
            await self._parse(record)
        known = await self._reconciler.reconcile(key, record)
        if self.records.get(key) is not record:
            return  # changed during the reconciliation, and queued again
        self.ended.discard(key)
        if self._catalogue.nads.get(key) != known:
            self._catalogue.nads[key] = known
            self._requeue_dependents(nad_dependency(key))

    async def _parse(self, record: NadRecord) -> None:
        """Parses a NAD with long lists while no other one is, and lets other tasks run before.

        Those of all workers in one round of the event loop would take seconds, and a leader that needs a few such
        rounds to renew its lease would lose it.
        """
        async with self._parsing:
            await asyncio.sleep(0)
            record.parse()

    async def _report_dangling(self, key: str) -> None:
        """Reports a NAD's missing network, once the queue is idle: another NAD in it may create that network."""
        await self.queue.idle()
        if record := self.records.get(key):
            await self._reconciler.report_dangling(record)

    def _referred(self, key: str) -> str | None:
        """Returns the NAD whose network the NAD of this name refers to."""
        record = self.records.get(key)
        reference = None if record is None else record.reference
        return None if reference is None else nad_of_network(self._configuration.cluster_name, reference)

    def _network_deleted(self, network: VirtualNetwork) -> None:
        """Queues the network to be restored with its NAD or namespace, whose reconciliation may change it too."""
        if network.nad is not None and self._reconciler.own_network(network.nad) is network:
            self.queue.add(network.nad)
        elif network.namespace is not None:
            self._namespace_network_deleted(network.namespace)
        else:
            self._restores.add(network.fq_name)

    def _network_changed(self, name: FqName) -> None:
        self._on_network_changed(name)
        self._requeue_dependents(network_dependency(name))
        for key in self._reconciler.pop_dependents(name):
            self.queue.add(key)
