"""The source that follows a Kubernetes API server.

Namespaces and NADs are followed beside pods, but no list of pods begins before networks were listed anew: a pod that is
in the list is told after the NADs that were there with it (rule 3), also after a cut in which both were made. Where
networks cannot be listed, pods that come wait for the first such list, but not for a later one for ever: most pods need
none of the networks that are missing then, and those that do wait by themselves. A new pod waits for its namespace in
the same way, see `newcomers`.

Unbound pods are not asked for: whatever watches them costs the server and us, and nothing can be done for them.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import TypeVar

from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.object_cache import Added, Change, Deleted, Modified
from contrail_config.kube.object_cache import Listed as KindListed
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from contrail_config.kube.resource import KubeObject, Resource
from contrail_config.kube.selector import Selector
from contrail_config.objects import VirtualMachine
from manager.kubernetes.informer import Informer
from manager.kubernetes.nad_crd import NadCrd
from manager.kubernetes.objects import identity, make_nad, make_namespace, make_pod, make_problem
from manager.kubernetes.pods_awaiting_namespace import PodsAwaitingNamespace
from manager.kubernetes.wire import NADS, NAMESPACES, PODS, NamespaceObject, PodObject
from manager.source import Applied, Gone, Listed, Nad, Namespace, Pod, SourceEvent

log = logging.getLogger(__name__)

_BOUND = Selector(fields="spec.nodeName!=")
_MOST_WAITING = 256
"""Events that lie here while the manager is busy; more changes of pods wait at the server."""

T = TypeVar("T", bound=KubeObject)
Make = Callable[[T], Pod | Nad | Namespace]


class KubernetesSource:
    """Pods, NADs and namespaces of a cluster. The NADs' CRD is made if it is missing, and waited for.

    `patience`: seconds for which a list of pods waits for one of networks, but for the first, which waits for ever; and
    for which a new pod waits for its namespace.
    """

    def __init__(
        self, client: KubeClient, *, definition: NadCrd, pace: ReflectorTimings | None = None, patience: float = 60.0
    ) -> None:
        pace = pace or ReflectorTimings()
        self._patience = patience
        self._told: asyncio.Queue[SourceEvent | BaseException] = asyncio.Queue()
        self._taken = asyncio.Event()
        nads = Reflector(client, NADS, timings=pace, before_list=definition.ensure)
        self._namespaces = Reflector(client, NAMESPACES, timings=pace)
        self._networks = (
            Informer(self._namespaces, tell=self._tell_namespace, ended=self._ended),
            Informer(nads, tell=partial(self._tell, NADS, make_nad), ended=self._ended),
        )
        self._pods = Reflector(client, PODS, _BOUND, timings=pace, before_list=self._list_networks)
        self._newcomers = PodsAwaitingNamespace(
            tell=self._tell_newcomer, emptied=self._tell_late_list, patience=patience
        )
        self._pods_complete: bool | None = None
        self._list_is_late = False  # for newcomers
        self._networks_listed = False
        self._all_pods_seen = False

    def problems(self) -> list[str]:
        """Why what was told is not up to date, if it is not."""
        return [problem for kind in (*self._networks, self._pods) if (problem := kind.problem) is not None]

    def pod_of(self, machine: VirtualMachine) -> PodObject | None:
        """The pod that the machine was made for, as it is now; None if it went."""
        pod = self._pods.objects.get((machine.namespace, machine.pod))
        return None if pod is None or identity(pod) != machine.uuid else pod

    def is_gone(self, machine: VirtualMachine) -> bool:
        """Whether the pod that the machine was made for is known to have gone, or goes with its namespace."""
        namespace = self._namespaces.objects.get(("", machine.namespace))
        if namespace is not None and namespace.metadata.deletion_timestamp is not None:
            return True
        return self._all_pods_seen and self.pod_of(machine) is None

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[SourceEvent]]:
        """All events, in order, until the context is left: to be entered once."""
        pods = asyncio.create_task(self._follow_pods())
        pods.add_done_callback(self._ended)
        try:
            async with aclosing(self._stream()) as stream:
                yield stream
        finally:
            pods.cancel()
            await asyncio.wait([pods])
            for kind in self._networks:
                await kind.stop()
            self._newcomers.close()

    async def _stream(self) -> AsyncGenerator[SourceEvent, None]:
        while True:
            event = await self._told.get()
            self._taken.set()
            if isinstance(event, BaseException):
                raise event
            yield event

    async def _follow_pods(self) -> None:
        async with self._pods.changes() as changes:
            async for change in changes:
                if isinstance(change, KindListed):
                    self._pods_complete = change.complete
                    self._all_pods_seen |= change.complete
                await self._room()
                self._tell_pod(change)

    async def _room(self) -> None:
        while self._told.qsize() >= _MOST_WAITING:
            self._taken.clear()
            await self._taken.wait()

    async def _list_networks(self) -> None:
        """Returns when networks are known as they are now, or as they were before if that takes too long."""
        self._pods_complete = None
        for kind in self._networks:
            await kind.relist()
        try:
            async with asyncio.timeout(self._patience if self._networks_listed else None):
                for kind in self._networks:
                    await kind.listed()
        except TimeoutError:
            log.warning("pods are listed, though networks are not: %s", "; ".join(self.problems()))
        self._networks_listed = True

    def _tell_pod(self, change: Change[PodObject]) -> None:
        """Tells of a pod, unless it is to wait for its namespace: after that, and never in another order."""
        match change:
            case Added(pod) if ("", pod.metadata.namespace) not in self._namespaces.objects:
                self._newcomers.put(pod)
            case Modified(pod) if pod in self._newcomers:
                self._newcomers.put(pod)
            case _:
                self._tell(PODS, make_pod, change)
                if isinstance(change, Deleted):
                    self._newcomers.remove(change.object)

    def _tell_namespace(self, change: Change[NamespaceObject]) -> None:
        self._tell(NAMESPACES, make_namespace, change)
        if isinstance(change, Added):
            self._newcomers.admit(change.object.metadata.name)

    def _tell_newcomer(self, pod: PodObject) -> None:
        self._told.put_nowait(Applied(make_pod(pod)))

    def _tell(self, resource: Resource[T], make: Make[T], change: Change[T]) -> None:
        match change:
            case KindListed():
                self._tell_listed()
            case UndecodableObject():
                self._told.put_nowait(make_problem(resource, change))
            case Deleted():
                self._told.put_nowait(Gone(make(change.object)))
            case _:
                self._told.put_nowait(Applied(make(change.object)))

    def _tell_listed(self) -> None:
        """Tells that all was told, if the newest list of every kind was; later, if newcomers still wait."""
        kinds = [self._pods_complete, *(kind.complete for kind in self._networks)]
        if None not in kinds:
            self._list_is_late = bool(self._newcomers)
            if not self._list_is_late:
                self._told.put_nowait(Listed(complete=all(kinds)))

    def _tell_late_list(self) -> None:
        if self._list_is_late:
            self._tell_listed()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Has the source fail as a part of it did."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._told.put_nowait(error)
