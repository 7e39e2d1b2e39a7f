"""The manager as a whole: follows a source of pods and networks, and keeps the store as they say.

Networks and pods are settled in the order in which they are told: a NAD's network before the next pod is looked at, at
start and after every new list (rule 3), and pods that went before the next NAD, whose network they may have kept. The
store is cleaned of what is not there any more once the source has told of everything.
"""

from collections.abc import AsyncIterator, Iterable

from prometheus_client import CollectorRegistry

from contrail_config.errors import StoreError
from contrail_config.objects import EventType, VirtualMachine
from contrail_config.store import EventLog, Store
from manager.api.queries import ManagerQueries
from manager.configuration import ManagerConfiguration
from manager.controller.nad_controller import NadController
from manager.controller.pod_controller import PodController
from manager.controller.pod_reconciler import Assigned
from manager.controller.pod_writer import Plugged
from manager.deletions import Deletion, Deletions, Remaining, Removed, no_deletions
from manager.dependencies import Dependency, namespace_dependency
from manager.events import EventRecorder, Subject
from manager.mapping.catalogue import Catalogue
from manager.mapping.virtual_network import pod_network
from manager.metrics import ManagerMetrics
from manager.parsing.network_reference import NETWORK_KEY
from manager.side_by_side import until_first_ends
from manager.source import Applied, Gone, Listed, Nad, Namespace, Pod, Problem, Source, SourceEvent
from manager.work_queue import WorkQueue

_MOST_QUEUED = 1024
"""Pods to be worked off at which the source is asked to wait: a list of any length does not lie in memory twice."""

_STRAYS = "addresses without a machine"


def _tell_nobody(_machine: VirtualMachine, *, anew: bool) -> None:
    """Nobody asks."""


class Manager:
    """Composed by whoever starts it; `run` once.

    `registry` takes its metrics. `plugged` tells whether any port of the machine of a uuid is plugged on its node.
    `stray_hold`: seconds for which addresses are held back that are found without a machine at start: more than none
    where machines may go while no manager runs, since their ports may still be plugged.
    `assigned` is told of each pod's machine once it is written. `losses`: which machines go from the store.
    `views` answers for the read-only API.
    """

    def __init__(
        self,
        configuration: ManagerConfiguration,
        *,
        source: Source,
        store: Store,
        event_log: EventLog,
        registry: CollectorRegistry,
        plugged: Plugged,
        stray_hold: float = 0.0,
        assigned: Assigned = _tell_nobody,
        losses: Deletions = no_deletions,
    ) -> None:
        metrics = ManagerMetrics(registry)
        self._configuration = configuration
        self._source = source
        self._losses = losses
        self._catalogue = Catalogue()
        self._recorder = EventRecorder(event_log, recorded=metrics.events)
        self._nads = NadController(
            configuration=configuration,
            catalogue=self._catalogue,
            store=store,
            recorder=self._recorder,
            wake=self._wake,
        )
        self._pods = PodController(
            configuration=configuration,
            catalogue=self._catalogue,
            store=store,
            recorder=self._recorder,
            metrics=metrics,
            plugged=plugged,
            stray_hold=stray_hold,
            network_released=self._nads.networks.released,
            assigned=assigned,
        )
        self._chores = WorkQueue(self._do_chore, limit=1, passing=StoreError)
        self._unready = "the source has not told of all pods and networks yet"
        self.views = ManagerQueries(self._pods.records, store, event_log)
        metrics.watch_queue("pods", self._pods.queue)
        metrics.watch_queue("networks", self._nads.queue)
        metrics.watch_pods(self._pods.records)
        metrics.watch_networks(self._catalogue.networks)

    async def run(self) -> None:
        """Works until it is cancelled, then finishes what it began; or until the source ends.

        Raises ConfigurationError if what the store holds cannot become what the configuration says, StoreError if the
        store cannot be read at start or watched, and whatever the source raises.
        """
        try:
            async with self._nads.networks.load(pod_network(self._configuration)) as changes, self._losses() as losses:
                await self._pods.load()
                networks = self._nads.networks.follow(changes)
                await until_first_ends(networks, self._follow_source(), self._follow_losses(losses))
        finally:
            await self._finish()

    def readiness(self) -> list[str]:
        """What keeps it from being ready: until every pod of the first list was tried once."""
        return [self._unready] if self._unready else []

    def unplugged(self, vmi_uuids: Iterable[str]) -> None:
        """The node unplugged the ports of these interfaces: addresses of deleted machines are held no longer."""
        self._pods.unplugged(vmi_uuids)

    def _wake(self, need: Dependency) -> None:
        self._pods.wake(need)

    async def _follow_source(self) -> None:
        async with self._source.events() as events:
            async for event in events:
                await self._take(event)

    async def _follow_losses(self, losses: AsyncIterator[Deletion]) -> None:
        async for loss in losses:
            match loss:
                case Removed():
                    await self._pods.queue.shorter_than(_MOST_QUEUED)
                    self._pods.removed(loss)
                case Remaining():
                    self._pods.remaining(loss.machines)

    async def _take(self, event: SourceEvent) -> None:
        match event:
            case Applied(object=Pod() as pod):
                await self._nads.queue.settled()
                await self._pods.queue.shorter_than(_MOST_QUEUED)
                self._pods.apply(pod)
            case Gone(object=Pod() as pod):
                self._pods.gone(pod)
            case Applied(object=Nad() as nad):
                await self._pods.queue.settled()
                self._nads.apply(nad)
            case Gone(object=Nad() as nad):
                await self._pods.queue.settled()
                self._nads.gone(nad)
            case Applied(object=Namespace() as namespace) | Gone(object=Namespace() as namespace):
                self._take_namespace(namespace, gone=isinstance(event, Gone))
            case Problem():
                subject = Subject(event.kind, event.namespace, event.name, event.uid)
                await self._recorder.record(subject, EventType.WARNING, event.reason, event.message)
            case Listed():
                await self._take_listed(event)

    def _take_namespace(self, namespace: Namespace, *, gone: bool) -> None:
        """Keeps the one annotation that counts, and nothing of namespaces without it."""
        text = None if gone else namespace.annotations.get(NETWORK_KEY)
        if text is None:
            self._catalogue.namespaces.pop(namespace.name, None)
        else:
            self._catalogue.namespaces[namespace.name] = {NETWORK_KEY: text}
        self._pods.wake(namespace_dependency(namespace.name))

    async def _take_listed(self, listed: Listed) -> None:
        await self._nads.queue.settled()
        await self._pods.queue.settled()
        if self._unready:
            self._unready = ""
            self._chores.add(_STRAYS)
        if listed.complete:
            self._pods.sweep()
            self._nads.sweep()

    async def _do_chore(self, _chore: str) -> None:
        await self._pods.release_strays()

    async def _finish(self) -> None:
        await self._chores.close()
        await self._nads.close()
        await self._pods.close()
        await self._recorder.flushed()
