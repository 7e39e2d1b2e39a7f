"""What a watcher iterates over.

A task of its own takes the changes from the reflector, so that whoever waits can be cancelled without a change being
lost. It stops taking while many wait, which slows down this connection alone; if the server gives the watch up for
that, the objects are listed anew, and what changed is told, if not every state in between.

Told is what differs in the config object from what was told before: labels that somebody sets are no change.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeError
from contrail_config.kube.object_cache import Change as KubeChange
from contrail_config.kube.object_cache import Deleted, Key, Listed
from contrail_config.kube.reflector import Reflector
from contrail_config.kube.resource import Metadata, Resource
from contrail_config.kube.selector import Selector
from contrail_config.store import Change, ChangeType, T_co, WatchStart

log = logging.getLogger(__name__)

DEADLINE: Final = 60.0
"""Seconds for the list that a watch from now on begins after."""

_CLOSE_DEADLINE: Final = 2.0

_MAX_WAITING: Final = 4096

See = Callable[[Any], T_co | None]
"""Gives the config object of an object of the API, None while it is not to be seen."""


class Watcher(Generic[T_co]):
    """An asynchronous iterator of changes, from `begin` until `cut` or `finish`."""

    def __init__(
        self,
        client: KubeClient,
        resource: Resource[Any],
        selection: Selector,
        see: See[T_co],
        *,
        start: WatchStart,
    ) -> None:
        self._client = client
        self._resource = resource
        self._selection = selection
        self._see: See[T_co] = see
        self._reflector = Reflector(client, resource, selection)
        self._silent = start is WatchStart.NOW
        self._listed = asyncio.Event()
        self._seen: dict[Key, T_co] = {}
        self._waiting: deque[Change[T_co]] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._ended = False
        self._failure: Exception | None = None
        self._task: asyncio.Task[None] | None = None

    def __aiter__(self) -> "Watcher[T_co]":
        return self

    async def __anext__(self) -> Change[T_co]:
        while not self._waiting:
            if self._failure is not None:
                raise StoreUnavailableError(f"the watch of {self._resource.plural} broke down") from self._failure
            if self._ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        self._room.set()
        return self._waiting.popleft()

    @property
    def problem(self) -> str | None:
        """Why what was told is not up to date, None if it is."""
        return self._reflector.problem

    async def begin(self) -> None:
        """Follows from here on, until `cut`, also if this is cancelled.

        Raises StoreUnavailableError if what is there now has to be known, and cannot be.
        """
        self._task = asyncio.create_task(self._follow())
        if not self._silent:
            return
        try:
            async with asyncio.timeout(DEADLINE):
                await self._listed.wait()
        except TimeoutError as error:
            raise StoreUnavailableError(str(self._reflector.problem)) from error

    async def cut(self) -> None:
        """Ends the iteration at once: what waits is dropped."""
        await self._stop()
        self._waiting.clear()
        self._end()

    async def finish(self) -> None:
        """Ends the iteration after what is there now: it is listed once more, if the server answers soon."""
        if self._ended:
            return
        await self._stop()
        try:
            async with asyncio.timeout(_CLOSE_DEADLINE):
                self._take_list(await self._client.list_all(self._resource, self._selection))
        except (KubeError, TimeoutError) as error:
            log.warning("the last changes of %s are not told: %s", self._resource.plural, error)
        self._end()

    async def _follow(self) -> None:
        try:
            async with self._reflector.changes() as changes:
                async for change in changes:
                    self._take(change)
                    while len(self._waiting) > _MAX_WAITING:
                        self._room.clear()
                        await self._room.wait()
        except Exception as error:  # noqa: BLE001 - whatever it is, who watches shall not wait for ever
            self._failure = error
            self._wake()

    async def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        """Whoever waits for what will not come shall look at why."""
        self._news.set()
        self._listed.set()

    def _take(self, change: KubeChange[Any]) -> None:
        if isinstance(change, Listed):
            self._synced()
        elif isinstance(change, UndecodableObject):
            log.warning("%s %s cannot be read: %s", self._resource.kind, change.metadata.name, change.problem)
        else:
            seen = None if isinstance(change, Deleted) else self._see(change.object)
            self._show(_key(change.object.metadata), seen)

    def _take_list(self, objects: list[Any]) -> None:
        there = {_key(item.metadata): self._see(item) for item in objects}
        for key in self._seen.keys() | there.keys():
            self._show(key, there.get(key))
        self._synced()

    def _synced(self) -> None:
        """The list is whole; only the first one has an end that is told."""
        if not self._listed.is_set() and not self._silent:
            self._tell(ChangeType.SYNCED, None)
        self._silent = False
        self._listed.set()

    def _show(self, key: Key, seen: T_co | None) -> None:
        before = self._seen.pop(key, None)
        if seen is not None:
            self._seen[key] = seen
        if self._silent or seen == before:
            return
        if before is not None and (seen is None or seen.uuid != before.uuid):
            self._tell(ChangeType.DELETED, before)
            before = None
        if seen is not None:
            self._tell(ChangeType.ADDED if before is None else ChangeType.MODIFIED, seen)

    def _tell(self, kind: ChangeType, item: T_co | None) -> None:
        self._waiting.append(Change(kind, item))
        self._news.set()


def _key(metadata: Metadata) -> Key:
    return metadata.namespace, metadata.name
