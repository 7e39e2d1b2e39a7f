"""Watcher: asynchronous iterator of changes of config objects.

A task of its own queues the changes of the reflector, so a consumer can be cancelled without losing a change. It pauses
while many changes are queued, which slows down only this connection. If the server closes the watch for that, the
objects are listed again; the differences are then reported, but not every intermediate state.

Only differences of the config object are reported: a changed label is no change. An object's name is its uuid, and what
moves from one namespace to another has two objects of that name for a moment: they count as one.
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
from contrail_config.kube.object_cache import Deleted, Key, Listed
from contrail_config.kube.object_cache import ObjectChange as KubeChange
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from contrail_config.kube.resource import Metadata, Resource
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.invalid_objects import InvalidObject, invalid_objects
from contrail_config.store import Change, ChangeType, T_co, WatchStart

log = logging.getLogger(__name__)

DEADLINE: Final = 60.0
"""Timeout in seconds of the list that precedes a watch with WatchStart.NOW."""

RELIST_SPREAD: Final = 5.0
"""Seconds over which the nodes list again after an API server restarted; a pod's first ADD waits longer than that."""

_DRAIN_DEADLINE: Final = 2.0

_MAX_QUEUED: Final = 4096

ConfigObjectOf = Callable[[Any], T_co | None]
"""Returns the config object of an API object; None while it is not visible."""


class Watcher(Generic[T_co]):
    """Asynchronous iterator of changes, from `start` until `abort` or `drain`. `per_node`: every node has one."""

    def __init__(
        self,
        client: KubeClient,
        resource: Resource[Any],
        selector: Selector,
        config_object_of: ConfigObjectOf[T_co],
        *,
        start: WatchStart,
        per_node: bool = False,
    ) -> None:
        self._client = client
        self._resource = resource
        self._selector = selector
        self._config_object_of: ConfigObjectOf[T_co] = config_object_of
        timings = ReflectorTimings(relist_spread=RELIST_SPREAD if per_node else 0.0)
        self._reflector = Reflector(client, resource, selector, timings=timings, from_cache=per_node)
        self._skipping_list = start is WatchStart.NOW
        self._listed = asyncio.Event()
        self._copies: dict[str, dict[Key, T_co]] = {}
        self._queue: deque[Change[T_co]] = deque()
        self._changed = asyncio.Event()
        self._has_space = asyncio.Event()
        self._ended = False
        self._failure: Exception | None = None
        self._task: asyncio.Task[None] | None = None

    def __aiter__(self) -> "Watcher[T_co]":
        return self

    async def __anext__(self) -> Change[T_co]:
        while not self._queue:
            if self._failure is not None:
                raise StoreUnavailableError(f"watch of {self._resource.plural}: unexpected error") from self._failure
            if self._ended:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        self._has_space.set()
        return self._queue.popleft()

    @property
    def problem(self) -> str | None:
        """Why the reported state is not up to date; None if it is."""
        return self._reflector.problem

    @property
    def invalid_objects(self) -> list[InvalidObject]:
        """The objects that are skipped now."""
        return invalid_objects(self._resource, self._reflector.undecodable.values())

    async def start(self) -> None:
        """Starts the task, which runs until `abort` or `drain`, even if this call is cancelled.

        With WatchStart.NOW, waits for the first list; raises StoreUnavailableError if that fails within DEADLINE.
        """
        self._task = asyncio.create_task(self._run())
        if not self._skipping_list:
            return
        try:
            async with asyncio.timeout(DEADLINE):
                await self._listed.wait()
        except TimeoutError as error:
            raise StoreUnavailableError(str(self._reflector.problem)) from error

    async def abort(self) -> None:
        """Drops the queued changes and ends the iteration."""
        await self._stop()
        self._queue.clear()
        self._end()

    async def drain(self) -> None:
        """Ends the iteration after the current state, which is listed once more if the server responds in time."""
        if self._ended:
            return
        await self._stop()
        try:
            async with asyncio.timeout(_DRAIN_DEADLINE):
                self._apply_list(await self._client.list_each(self._resource, self._selector))
        except (KubeError, TimeoutError) as error:
            log.warning("watch of %s: last changes not reported: %s", self._resource.plural, error)
        self._end()

    async def _run(self) -> None:
        try:
            async with self._reflector.changes() as changes:
                async for change in changes:
                    self._apply(change)
                    while len(self._queue) > _MAX_QUEUED:
                        self._has_space.clear()
                        await self._has_space.wait()
        except Exception as error:  # noqa: BLE001 - any error must reach the consumer, which would wait forever
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
        """Wakes those that wait, which then check for the end or a failure."""
        self._changed.set()
        self._listed.set()

    def _apply(self, change: KubeChange[Any]) -> None:
        if isinstance(change, Listed):
            self._synced()
        elif isinstance(change, UndecodableObject):
            (invalid,) = invalid_objects(self._resource, [change])
            log.error("%s: skipped: %s", invalid.title, change.problem)
        else:
            current = None if isinstance(change, Deleted) else self._config_object_of(change.object)
            self._report(_key(change.object.metadata), current)

    def _apply_list(self, objects: list[Any]) -> None:
        found = [item for item in objects if not isinstance(item, UndecodableObject)]
        listed: dict[Key, T_co | None] = {_key(item.metadata): self._config_object_of(item) for item in found}
        existing = {_key(item.metadata) for item in objects}
        missing: list[Key] = [key for copies in self._copies.values() for key in copies if key not in existing]
        for key in [*listed, *missing]:
            self._report(key, listed.get(key))
        self._synced()

    def _synced(self) -> None:
        """Handles the end of a list. Only the first list ends with SYNCED."""
        if not self._listed.is_set() and not self._skipping_list:
            self._enqueue(ChangeType.SYNCED, None)
        self._skipping_list = False
        self._listed.set()

    def _report(self, key: Key, current: T_co | None) -> None:
        """Reports the change that the new state of one object makes: none if it is a copy of another one."""
        _, name = key
        copies = self._copies.pop(name, {})
        before = next(reversed(copies.values()), None)
        copies.pop(key, None)
        if current is not None:
            copies[key] = current
        if copies:
            self._copies[name] = copies
        after = next(reversed(copies.values()), None)
        if self._skipping_list or after == before:
            return
        if after is None:
            self._enqueue(ChangeType.DELETED, before)
        else:
            self._enqueue(ChangeType.ADDED if before is None else ChangeType.MODIFIED, after)

    def _enqueue(self, kind: ChangeType, item: T_co | None) -> None:
        self._queue.append(Change(kind, item))
        self._changed.set()


def _key(metadata: Metadata) -> Key:
    return metadata.namespace, metadata.name
