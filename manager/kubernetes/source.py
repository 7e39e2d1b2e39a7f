"""Source that watches a Kubernetes API server.

Namespaces and NADs are watched beside pods, but no list of pods begins before networks were relisted: a pod in the list
is sent after the NADs that existed with it (rule 3), also after an interruption in which both were created. If networks
cannot be listed, pods wait without limit for the first such list, but only up to a timeout for a later one: most pods
need none of the missing networks, and those that do wait by themselves. A new pod waits for its namespace in the same
way, see `pods_awaiting_namespace`.

Unbound pods are not watched: that would cost the server and the manager, and nothing can be done for them.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.object_cache import Added, Deleted, Modified, ObjectChange
from contrail_config.kube.object_cache import Listed as KindListed
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from contrail_config.kube.resource import KubeObject, Resource
from contrail_config.kube.selector import Selector
from contrail_config.objects import VirtualMachine
from manager.kubernetes.informer import Informer
from manager.kubernetes.nad_crd import NadCrd
from manager.kubernetes.objects import identity, make_nad, make_namespace, make_pod, make_problem
from manager.kubernetes.pods_awaiting_namespace import PodsAwaitingNamespace
from manager.kubernetes.wire import NADS, NAMESPACES, NODES, PODS, NamespaceObject, NodeObject, PodObject
from manager.source import Applied, Gone, Listed, Nad, Namespace, Pod, SourceEvent

log = logging.getLogger(__name__)

_BOUND = Selector(fields="spec.nodeName!=")
_MAX_QUEUED = 256
"""Events queued for the manager; beyond it, changes of pods wait in the connection to the server."""

T = TypeVar("T", bound=KubeObject)
Make = Callable[[T], Pod | Nad | Namespace]


class KubernetesSource:
    """Pods, NADs and namespaces of a cluster. Creates the CRD of NADs if it is missing, and waits for it.

    `node_selector`: label selector of the nodes whose pods get interfaces; empty: all nodes, and nodes are not watched.
    Pods of other nodes are sent as excluded, and again when their node begins or ceases to match.

    `timeout`: seconds for which a list of pods waits for a relist of networks (for the first list without limit), and a
    new pod for its namespace.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        nad_crd: NadCrd,
        node_selector: str = "",
        timings: ReflectorTimings | None = None,
        timeout: float = 60.0,
    ) -> None:
        timings = timings or ReflectorTimings()
        self._timeout = timeout
        # Unbounded: networks must never be blocked, since a list of pods waits for them. Pods: see `_wait_for_space`.
        self._queue: asyncio.Queue[SourceEvent | BaseException] = asyncio.Queue()
        self._taken = asyncio.Event()
        nads = Reflector(client, NADS, timings=timings, before_list=nad_crd.ensure)
        self._namespaces = Reflector(client, NAMESPACES, timings=timings)
        self._namespace_informer = Informer(self._namespaces, on_change=self._send_namespace, on_end=self._fail)
        self._networks: list[Informer[Any]] = [
            self._namespace_informer,
            Informer(nads, on_change=partial(self._send, NADS, make_nad), on_end=self._fail),
        ]
        self._nodes: Reflector[NodeObject] | None = None
        if node_selector:
            self._nodes = Reflector(client, NODES, Selector(labels=node_selector), timings=timings)
            self._networks.append(Informer(self._nodes, on_change=self._node_changed, on_end=self._fail))
        self._pods = Reflector(client, PODS, _BOUND, timings=timings, before_list=self._list_networks)
        self._awaiting_namespace = PodsAwaitingNamespace(
            deliver=self._send_awaited, on_empty=self._send_deferred_listed, timeout=timeout
        )
        self._pods_complete: bool | None = None
        self._listed_deferred = False  # until no pod awaits its namespace
        self._networks_listed = False
        self._all_pods_seen = False

    def problems(self) -> list[str]:
        """Returns why the sent objects are not up to date, if so."""
        problems = [*(kind.problem for kind in self._networks), self._pods.problem]
        return [problem for problem in problems if problem is not None]

    @property
    def backlog(self) -> int:
        """Number of events that the manager has not taken yet, and of namespaces that pods wait for."""
        return self._queue.qsize() + len(self._awaiting_namespace)

    async def namespace_exists(self, name: str) -> bool:
        """Whether there is a namespace of this name; waits until namespaces are listed."""
        await self._namespace_informer.wait_until_listed()
        return ("", name) in self._namespaces.objects

    def pod(self, namespace: str, name: str) -> PodObject | None:
        """Returns the cached pod."""
        return self._pods.objects.get((namespace, name))

    def pod_of(self, vm: VirtualMachine) -> PodObject | None:
        """Returns the current state of the virtual machine's pod; None if it is gone."""
        pod = self.pod(vm.namespace, vm.pod)
        return None if pod is None or identity(pod) != vm.uuid else pod

    def pod_exists(self, vm: VirtualMachine) -> bool:
        """Whether the virtual machine's pod is known to exist."""
        return self.pod_of(vm) is not None

    def is_gone(self, vm: VirtualMachine) -> bool:
        """Whether the virtual machine's pod is known to be gone."""
        return self._all_pods_seen and not self.pod_exists(vm)

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[SourceEvent]]:
        """Yields all events, in order, until the context is left; to be entered once."""
        pods = asyncio.create_task(self._follow_pods())
        pods.add_done_callback(self._fail)
        try:
            async with aclosing(self._stream()) as stream:
                yield stream
        finally:
            pods.cancel()
            await asyncio.wait([pods])  # unlike `await pods`, it does not raise: `_fail` has reported the error
            for kind in self._networks:
                await kind.stop()
            self._awaiting_namespace.close()

    async def _stream(self) -> AsyncGenerator[SourceEvent, None]:
        while True:
            event = await self._queue.get()
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
                await self._wait_for_space()
                self._send_pod(change)

    async def _wait_for_space(self) -> None:
        while self._queue.qsize() >= _MAX_QUEUED:
            self._taken.clear()
            await self._taken.wait()

    async def _list_networks(self) -> None:
        """Relists networks; returns when they are listed, or, with an earlier list, on timeout."""
        self._pods_complete = None  # no `Listed` before the end of the list of pods that begins after this
        for kind in self._networks:
            await kind.relist()
        try:
            async with asyncio.timeout(self._timeout if self._networks_listed else None):
                for kind in self._networks:
                    await kind.wait_until_listed()
        except TimeoutError:
            log.warning("listing pods although networks are not listed: %s", "; ".join(self.problems()))
        self._networks_listed = True

    def _send_pod(self, change: ObjectChange[PodObject]) -> None:
        """Sends a pod, or holds it back until its namespace is known; its changes and deletion never overtake it."""
        match change:
            case Added(pod) if ("", pod.metadata.namespace) not in self._namespaces.objects:
                self._awaiting_namespace.put(pod)
            case Modified(pod) if pod in self._awaiting_namespace:
                self._awaiting_namespace.put(pod)
            case _:
                self._send(PODS, self._make_pod, change)
                if isinstance(change, Deleted):
                    self._awaiting_namespace.remove(change.object)

    def _send_namespace(self, change: ObjectChange[NamespaceObject]) -> None:
        self._send(NAMESPACES, make_namespace, change)
        if isinstance(change, Added):  # after the namespace itself was queued
            self._awaiting_namespace.release(change.object.metadata.name)

    def _send_awaited(self, pod: PodObject) -> None:
        self._queue.put_nowait(Applied(self._make_pod(pod)))

    def _make_pod(self, pod: PodObject) -> Pod:
        made = make_pod(pod)
        included = self._nodes is None or ("", made.node) in self._nodes.objects
        return made if included else msgspec.structs.replace(made, excluded=True)

    def _node_changed(self, change: ObjectChange[NodeObject]) -> None:
        """Sends the pods of a node again that begins or ceases to match; the server compares the labels."""
        match change:
            case KindListed():
                self._send_listed()
            case Added(node) | Deleted(node):
                for pod in self._pods.objects.values():
                    if pod.spec.node_name == node.metadata.name and self._namespace_is_known(pod):
                        self._send_awaited(pod)

    def _namespace_is_known(self, pod: PodObject) -> bool:
        return ("", pod.metadata.namespace) in self._namespaces.objects and pod not in self._awaiting_namespace

    def _send(self, resource: Resource[T], make: Make[T], change: ObjectChange[T]) -> None:
        match change:
            case KindListed():
                self._send_listed()
            case UndecodableObject():
                self._queue.put_nowait(make_problem(resource, change))
            case Deleted():
                self._queue.put_nowait(Gone(make(change.object)))
            case _:
                self._queue.put_nowait(Applied(make(change.object)))

    def _send_listed(self) -> None:
        """Sends `Listed` once the newest list of every kind is sent; later, if pods still await their namespaces."""
        kinds = [self._pods_complete, *(kind.complete for kind in self._networks)]
        if None not in kinds:
            self._listed_deferred = bool(self._awaiting_namespace)
            if not self._listed_deferred:
                self._queue.put_nowait(Listed(complete=all(kinds)))

    def _send_deferred_listed(self) -> None:
        if self._listed_deferred:
            self._send_listed()

    def _fail(self, task: asyncio.Task[None]) -> None:
        """Makes the source fail with the error of one of its tasks."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._queue.put_nowait(error)
