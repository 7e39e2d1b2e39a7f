"""A folder of manifests, a source that reads it, and a real store that keeps identities."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster, blockbuster_ctx

from contrail_config.embedded.store import SqliteStore
from manager.manifests.source import ManifestSource
from manager.source import Applied, Listed, SourceEvent

DEADLINE = 10.0
QUIET_PERIOD = 0.03


class Listener:
    """A consumer of events; every wait has a deadline."""

    def __init__(self, stream: AsyncIterator[SourceEvent], folder: Path) -> None:
        self._stream = stream
        self._folder = folder
        self._numbers = itertools.count()

    async def next(self) -> SourceEvent:
        """Returns the next event."""
        async with asyncio.timeout(DEADLINE):
            return await anext(self._stream)

    async def listed(self) -> list[SourceEvent]:
        """Returns all events up to and including `Listed`."""
        return await self._until(lambda event: isinstance(event, Listed))

    async def all(self) -> list[SourceEvent]:
        """Returns all events of the changes until now.

        Two marker files delimit them: events of an earlier change arrive with the first marker at the latest.
        """
        first = await self._until_marker()
        return first + await self._until_marker()

    async def _until_marker(self) -> list[SourceEvent]:
        name = f"marker-{next(self._numbers)}"
        (self._folder / f"zzz-{name}.yaml").write_text(pod(name))
        *events, _ = await self._until(lambda event: isinstance(event, Applied) and event.object.name == name)
        return events

    async def _until(self, is_last: Callable[[SourceEvent], bool]) -> list[SourceEvent]:
        events = [await self.next()]
        while not is_last(events[-1]):
            events.append(await self.next())
        return events


Listen = Callable[..., AbstractAsyncContextManager[Listener]]


def pod(name: str, *, namespace: str = "default", networks: str = "", uid: str = "", more: str = "") -> str:
    """Returns the manifest of a pod."""
    return f"""---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: {namespace}
  {f"uid: {uid}" if uid else ""}
  annotations:
    k8s.v1.cni.cncf.io/networks: {networks!r}
{more}
"""


def nad(name: str, *, namespace: str = "default", cidr: str = "10.1.1.0/24", uid: str = "") -> str:
    """Returns the manifest of a network attachment definition."""
    return f"""---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: {name}
  namespace: {namespace}
  {f"uid: {uid}" if uid else ""}
  annotations: {{opencontrail.org/cidr: {cidr}}}
spec:
  config: '{{"type": "contrail-k8s-cni"}}'
"""


def namespace(name: str, **annotations: str) -> str:
    """Returns the manifest of a namespace."""
    return f"---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, annotations: {annotations}}}\n"


def summary(events: list[SourceEvent]) -> list[str]:
    """Returns events in short: `Applied Pod web`, `Problem Manifest a.yaml`, `Listed`."""
    return [_summary(event) for event in events]


def _summary(event: Any) -> str:
    word = type(event).__name__
    if isinstance(event, Listed):
        return word if event.complete else f"{word} with gaps"
    return (
        f"{word} {event.kind} {event.name}"
        if word == "Problem"
        else f"{word} {type(event.object).__name__} {event.object.name}"
    )


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[BlockBuster]:
    with blockbuster_ctx(["manager"]) as blockbuster:  # tests may write files
        yield blockbuster


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "manifests"
    path.mkdir()
    return path


@pytest.fixture
def listen(folder: Path, store: SqliteStore) -> Listen:
    """Starts a source on the folder: `async with listen() as events`; options are those of `ManifestSource`."""

    @contextlib.asynccontextmanager
    async def listen(**options: Any) -> AsyncIterator[Listener]:
        settings: dict[str, Any] = {"node": "worker-1", "identities": store, "quiet_period": QUIET_PERIOD} | options
        async with ManifestSource(str(folder), **settings).events() as stream:
            yield Listener(stream, folder)

    return listen
