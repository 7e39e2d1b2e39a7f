"""Recorder of a reflector's changes, with helpers that wait for them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.object_cache import Added, Deleted, Key, Listed, Modified, ObjectChange
from contrail_config.kube.reflector import Reflector, ReflectorTimings

DEADLINE = 10.0
QUICK = ReflectorTimings(first_pause=0.002, longest_pause=0.02, silence=5.0, short_watch=0.0)
"""Short intervals for tests that wait for retries and resumed watches."""


class ChangeSignal:
    """Wakes tests that wait for a condition after each change."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wakes waiters, which check their condition again."""
        self._event.set()

    async def until(self, condition: Callable[[], object]) -> None:
        """Waits until the condition holds; checks it after each `notify`."""
        async with asyncio.timeout(DEADLINE):
            while not condition():
                self._event.clear()
                await self._event.wait()


class RecordedChanges:
    """Changes in order, and the `objects` that result from them."""

    def __init__(self) -> None:
        self.changes: list[ObjectChange[Any]] = []
        self.objects: dict[Key, Any] = {}

    @property
    def lists(self) -> int:
        """Number of completed lists."""
        return sum(isinstance(change, Listed) for change in self.changes)

    def names(self) -> list[tuple[str, str]]:
        """Type of change and name of the object, for each change."""
        return [(type(change).__name__, _name(change)) for change in self.changes]

    def apply(self, change: ObjectChange[Any]) -> None:
        """Applies a change, which must be consistent with the earlier ones."""
        self.changes.append(change)
        match change:
            case Added(found):
                assert _key(found) not in self.objects
                self.objects[_key(found)] = found
            case Modified(found):
                assert self.objects[_key(found)].metadata.uid == found.metadata.uid
                assert self.objects[_key(found)] != found
                self.objects[_key(found)] = found
            case Deleted(last):
                assert self.objects.pop(_key(last)).metadata.uid == last.metadata.uid


class RecordedReflector(RecordedChanges, ChangeSignal):
    """The changes of a reflector so far."""

    def __init__(self, reflector: Reflector[Any]) -> None:
        RecordedChanges.__init__(self)
        ChangeSignal.__init__(self)
        self.reflector = reflector

    def apply(self, change: ObjectChange[Any]) -> None:
        super().apply(change)
        self.notify()

    async def until_seen(self, *names: str) -> None:
        """Waits until exactly the objects of these names exist."""
        await self.until(lambda: sorted(name for _, name in self.objects) == sorted(names))

    async def until_listed(self, times: int = 1) -> None:
        await self.until(lambda: self.lists >= times)


@contextlib.asynccontextmanager
async def record_reflector(reflector: Reflector[Any]) -> AsyncIterator[RecordedReflector]:
    """Runs a reflector and records its changes until the context is left."""
    recorded = RecordedReflector(reflector)

    async def run() -> None:
        async with reflector.changes() as changes:
            async for change in changes:
                recorded.apply(change)

    task = asyncio.create_task(run())
    try:
        yield recorded
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _key(found: Any) -> Key:
    return found.metadata.namespace, found.metadata.name


def _name(change: ObjectChange[Any]) -> str:
    if isinstance(change, Listed):
        return ""
    name: str = (change if isinstance(change, UndecodableObject) else change.object).metadata.name
    return name


async def eventually(condition: Callable[..., object], *arguments: object) -> None:
    """Polls until the condition holds, for changes that no event reports."""
    async with asyncio.timeout(DEADLINE):
        while not condition(*arguments):  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.001)
