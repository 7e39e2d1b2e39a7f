"""A reflector that is followed by a task, with all that it changes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.object_cache import Added, Change, Deleted, Key, Listed, Modified
from contrail_config.kube.reflector import Reflector, ReflectorTimings

DEADLINE = 10.0
QUICK = ReflectorTimings(first_pause=0.002, longest_pause=0.02, silence=5.0, short_watch=0.0)
"""Times for tests that wait for what comes after them."""


class ChangeSignal:
    """What a listener has heard: whoever waits for more looks at it again whenever there is news."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def notify(self) -> None:
        """Lets those who wait look again."""
        self._news.set()

    async def until(self, condition: Callable[[], object]) -> None:
        """Returns when the condition holds, at once or after some news."""
        async with asyncio.timeout(DEADLINE):
            while not condition():
                self._news.clear()
                await self._news.wait()


class RecordedChanges:
    """Changes that were changes: `changes` in order, `view` as it follows from them."""

    def __init__(self) -> None:
        self.changes: list[Change[Any]] = []
        self.objects: dict[Key, Any] = {}

    @property
    def lists(self) -> int:
        """Number of lists that were changes."""
        return sum(isinstance(change, Listed) for change in self.changes)

    def names(self) -> list[tuple[str, str]]:
        """What was changes, as the kind of change and the name of the object."""
        return [(type(change).__name__, _name(change)) for change in self.changes]

    def apply(self, change: Change[Any]) -> None:
        """Replays a change, which must fit what was changes before."""
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
    """What a reflector changes until now, and what it tells."""

    def __init__(self, reflector: Reflector[Any]) -> None:
        RecordedChanges.__init__(self)
        ChangeSignal.__init__(self)
        self.reflector = reflector

    def apply(self, change: Change[Any]) -> None:
        super().apply(change)
        self.notify()

    async def until_seen(self, *names: str) -> None:
        """Returns when the objects of these names are there, and no others."""
        await self.until(lambda: sorted(name for _, name in self.objects) == sorted(names))

    async def until_listed(self, times: int = 1) -> None:
        await self.until(lambda: self.lists >= times)


@contextlib.asynccontextmanager
async def record_reflector(reflector: Reflector[Any]) -> AsyncIterator[RecordedReflector]:
    """Follows a reflector until the context is left."""
    followed = RecordedReflector(reflector)

    async def run() -> None:
        async with reflector.changes() as changes:
            async for change in changes:
                followed.apply(change)

    task = asyncio.create_task(run())
    try:
        yield followed
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _key(found: Any) -> Key:
    return found.metadata.namespace, found.metadata.name


def _name(change: Change[Any]) -> str:
    if isinstance(change, Listed):
        return ""
    name: str = (change if isinstance(change, UndecodableObject) else change.object).metadata.name
    return name


async def eventually(condition: Callable[..., object], *arguments: object) -> None:
    """Returns when the condition holds: for what happens without telling anybody."""
    async with asyncio.timeout(DEADLINE):
        while not condition(*arguments):  # noqa: ASYNC110 - nobody sets an event
            await asyncio.sleep(0.001)
