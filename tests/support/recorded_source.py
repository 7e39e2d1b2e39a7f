"""Recorder of a Kubernetes source's events, with helpers that wait for them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TypeVar

from contrail_config.kube.client import KubeClient
from manager.kubernetes.nad_crd import NadCrd
from manager.kubernetes.source import KubernetesSource
from manager.source import Applied, Gone, Listed, Nad, Namespace, Pod, Problem, SourceEvent
from tests.support.recorded_reflector import DEADLINE, QUICK, ChangeSignal

T = TypeVar("T", Pod, Nad, Namespace)


class RecordedSource(ChangeSignal):
    """Records the events of a source in order."""

    def __init__(self, source: KubernetesSource) -> None:
        super().__init__()
        self.source = source
        self.events: list[SourceEvent] = []

    async def follow(self) -> None:
        async with self.source.events() as events:
            async for event in events:
                self.events.append(event)
                self.notify()

    async def until_listed(self, times: int = 1) -> None:
        await self.until(lambda: len(self.lists) >= times)

    @property
    def lists(self) -> list[Listed]:
        return [event for event in self.events if isinstance(event, Listed)]

    @property
    def problems(self) -> list[Problem]:
        return [event for event in self.events if isinstance(event, Problem)]

    def lines(self, *, since: int = 0) -> list[str]:
        """The events as `+pod name`, `-nad name`, `listed`, without the server's own namespaces."""
        return [line for event in self.events[since:] if (line := _line(event))]

    def pod(self, name: str) -> Pod:
        """The last state of the pod."""
        return next(pod for pod in self._applied(Pod) if pod.name == name)

    def nad(self, name: str) -> Nad:
        """The last state of the NAD."""
        return next(nad for nad in self._applied(Nad) if nad.name == name)

    def namespace(self, name: str) -> Namespace:
        """The last state of the namespace."""
        return next(namespace for namespace in self._applied(Namespace) if namespace.name == name)

    def _applied(self, kind: type[T]) -> list[T]:
        found = [event.object for event in reversed(self.events) if isinstance(event, Applied)]
        return [one for one in found if isinstance(one, kind)]


@contextlib.asynccontextmanager
async def record_source(
    client: KubeClient, *, wait_timeout: float = DEADLINE, deadline: float = DEADLINE, node_selector: str = ""
) -> AsyncIterator[RecordedSource]:
    """Runs a source and records its events until the context is left."""
    nad_crd = NadCrd(client, deadline=deadline)
    recorded = RecordedSource(
        KubernetesSource(client, nad_crd=nad_crd, node_selector=node_selector, timings=QUICK, timeout=wait_timeout)
    )
    task = asyncio.create_task(recorded.follow())
    try:
        yield recorded
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _line(event: SourceEvent) -> str:
    match event:
        case Listed(complete=complete):
            return "listed" if complete else "listed in part"
        case Problem(kind=kind, name=name):
            return f"? {kind} {name}"
        case Applied(object=one) | Gone(object=one):
            kind = type(one).__name__.lower()
            if isinstance(one, Namespace) and one.name != "blue":
                return ""
            return f"{'+' if isinstance(event, Applied) else '-'}{kind} {one.name}"
