"""Temporary pods in the cluster: created, awaited and removed, at most some seconds each.

All have the label of their run. So `remove` needs to know nothing but the run, whatever was created until then.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import (
    KubeConflictError,
    KubeError,
    KubeForbiddenError,
    KubeNotFoundError,
    KubeUnauthorizedError,
    KubeUnavailableError,
)
from contrail_config.kube.resource import Resource
from contrail_config.kube.selector import Selector
from contrailctl.check.live.manifests import EVENTS, NAMESPACES, PODS, EventObject, PodObject, namespace_manifest
from contrailctl.check.live.run import RUN_LABEL, Run, is_left_behind

_CONCURRENT = 16
_POLL = 1.0  # seconds between lists of the pods
_NAMESPACE_SECONDS = 10.0  # to delete the namespace where pods are left
_MAX_QUOTED = 300  # characters of a reason
_NOT_OF_ONE_POD = (KubeUnavailableError, KubeUnauthorizedError)

T = TypeVar("T")


class Awaited(NamedTuple):
    """Names of the pods that became ready, and why the others did not."""

    ready: frozenset[str]
    reasons: Mapping[str, str]


class TemporaryPods:
    """The pods of one run, in a namespace of their own or in one that exists."""

    def __init__(self, client: KubeClient, run: Run, *, namespace: str = "") -> None:
        self.namespace = namespace or run.name
        self._client = client
        self._run = run
        self._is_own = not namespace
        self._creations: set[asyncio.Task[Any]] = set()
        self._left: int | None = None  # pods that were there when they were listed last for their removal
        self._selector = Selector(namespace=self.namespace, labels=f"{RUN_LABEL}={run.identifier}")

    async def create(self, manifests: Iterable[Mapping[str, Any]]) -> dict[str, str]:
        """Creates namespace and pods; returns why pods were rejected, by name. Raises KubeError."""
        if self._is_own:
            try:
                await self._create(NAMESPACES, namespace_manifest(self._run))
            except KubeForbiddenError:
                self._is_own = False  # there is none to delete
                raise

        async def create(manifest: Mapping[str, Any]) -> tuple[str, str]:
            name: str = manifest["metadata"]["name"]
            try:
                await self._create(PODS, manifest, namespace=self.namespace)
            except _NOT_OF_ONE_POD:
                raise
            except KubeError as error:  # by a quota or an admission policy, which may concern some pods only
                return name, _quoted(str(error))
            return name, ""

        return {name: why for name, why in await _each(create, manifests) if why}

    async def await_ready(self, names: Iterable[str], *, seconds: float) -> Awaited:
        """Waits until pods are ready, or have ended, for at most `seconds`. Raises KubeError."""
        wanted = set(names)
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            pods = {each.metadata.name: each for each in await self._client.list_all(PODS, self._selector)}
            ready = {name for name in wanted if name in pods and pods[name].is_ready}
            open_ = {name for name in wanted - ready if name in pods and not pods[name].has_ended}
            if not open_ or loop.time() + _POLL > end:
                break
            await asyncio.sleep(_POLL)

        async def reason(name: str) -> tuple[str, str]:
            return name, await self._reason(pods[name]) if name in pods else "deleted by somebody else"

        return Awaited(frozenset(ready), dict(await _each(reason, sorted(wanted - ready))))

    async def remove(self, *, seconds: float) -> list[str]:
        """Deletes everything and waits until pods are gone; returns what is left after `seconds`, and why.

        The pods of a dead kubelet stay until their node returns. A namespace of their own is deleted nevertheless, and
        then goes with the last of them: nobody else would delete it.
        """
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*self._creations, return_exceptions=True)
                await self._remove_pods()
        except (KubeError, TimeoutError) as error:
            left = self.left(str(error) or f"not gone within {seconds:g} s")
            why = await self._delete_namespace()
            if why or not self._is_own:
                return [left, *([why] if why else [])]
            return [f"{left}; namespace {self._run.name}: it goes with its last pod"]
        why = await self._delete_namespace()
        return [why] if why else []

    def left(self, why: str) -> str:
        """Returns what is left of the pods, as far as it is known."""
        number = {None: "pods", 1: "1 pod"}.get(self._left, f"{self._left} pods")
        return f"{number} with the label {RUN_LABEL}={self._run.identifier}: {_quoted(why)}"

    async def _create(self, resource: Resource[Any], manifest: Mapping[str, Any], *, namespace: str = "") -> None:
        """Creates an object. Cancelled, it leaves the request to `remove`: the server may carry it out yet."""
        creation = asyncio.create_task(self._client.create(resource, dict(manifest), namespace=namespace))
        self._creations.add(creation)
        creation.add_done_callback(self._creations.discard)
        await asyncio.shield(creation)

    async def _delete_namespace(self) -> str:
        """Deletes the namespace if it is of this run; returns what is left, and why."""
        if not self._is_own:
            return ""
        try:
            async with asyncio.timeout(_NAMESPACE_SECONDS):
                await _delete(self._client, NAMESPACES, self._run.name)
        except (KubeError, TimeoutError) as error:
            why = str(error) or f"not deleted within {_NAMESPACE_SECONDS:g} s"
            return f"namespace {self._run.name}: {_quoted(why)}"
        return ""

    async def _remove_pods(self) -> None:
        while pods := await self._client.list_all(PODS, self._selector):
            self._left = len(pods)
            await _delete_pods(self._client, pods)
            await asyncio.sleep(_POLL / 2)

    async def _reason(self, pod: PodObject) -> str:
        """Returns why a pod is not ready: what its container says, else the latest warning, else its phase."""
        states = [each.state for each in pod.status.container_statuses]
        ended = [state.terminated for state in states if state.terminated is not None]
        waiting = [state.waiting for state in states if state.waiting is not None]
        said = [*ended, *(each for each in waiting if each.reason != "ContainerCreating")]
        texts = [
            pod.status.reason,
            pod.status.message,
            *(text for each in said for text in (each.reason, each.message)),
        ]
        return _quoted(": ".join(filter(None, texts))) or await self._warning(pod) or f"phase {pod.status.phase}"

    async def _warning(self, pod: PodObject) -> str:
        selector = Selector(namespace=self.namespace, fields=f"involvedObject.uid={pod.metadata.uid},type=Warning")
        found: list[EventObject] = await self._client.list_all(EVENTS, selector)
        latest = max(found, key=lambda each: int(each.metadata.resource_version), default=None)
        return _quoted(f"{latest.reason}: {latest.message}") if latest is not None else ""


async def remove_left_behind(client: KubeClient) -> None:
    """Deletes pods and namespaces of runs that were killed, where that is permitted. Raises KubeError."""
    now = datetime.now(UTC)
    selector = Selector(labels=RUN_LABEL)
    pods = await client.list_all(PODS, selector)
    namespaces = await client.list_all(NAMESPACES, selector)
    with contextlib.suppress(KubeForbiddenError):  # an operator of other namespaces; they end by themselves
        await _delete_pods(
            client, [each for each in pods if is_left_behind(each.metadata.name, each.metadata.annotations, now=now)]
        )
        for each in namespaces:
            if is_left_behind(each.metadata.name, each.metadata.annotations, now=now):
                await _delete(client, NAMESPACES, each.metadata.name)


async def _delete_pods(client: KubeClient, pods: Sequence[PodObject]) -> None:
    async def delete(pod: PodObject) -> None:
        await _delete(client, PODS, pod.metadata.name, namespace=pod.metadata.namespace)

    await _each(delete, [each for each in pods if not each.metadata.deletion_timestamp])


async def _delete(client: KubeClient, resource: Any, name: str, *, namespace: str = "") -> None:
    # Gone, or being deleted already: a namespace that has contents says so by a conflict.
    with contextlib.suppress(KubeNotFoundError, KubeConflictError):
        await client.delete(resource, name, namespace=namespace)


S = TypeVar("S")


async def _each(work: Callable[[S], Awaitable[T]], items: Iterable[S]) -> list[T]:
    """Returns the results of all items, some at a time; begins no more of them once one has failed."""
    slots = asyncio.Semaphore(_CONCURRENT)

    async def run(item: S) -> T:
        async with slots:
            return await work(item)

    tasks = [asyncio.create_task(run(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _quoted(text: str) -> str:
    return " ".join(text.split())[:_MAX_QUOTED]
