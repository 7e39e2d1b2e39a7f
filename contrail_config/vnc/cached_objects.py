"""Cache of the config objects of one kind, and the watchers that follow it.

It holds what the server shows and what this process wrote, and tells watchers each difference once.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

from contrail_config.objects import VirtualMachine, VirtualNetwork
from contrail_config.store import Change, ChangeType, WatchStart
from contrail_config.vnc.own_writes import OwnWrites
from contrail_config.vnc.subscriptions import Subscriptions

T = TypeVar("T", VirtualMachine, VirtualNetwork)


class CachedObjects(Generic[T]):
    """Config objects by uuid."""

    def __init__(self) -> None:
        self._objects: dict[str, T] = {}
        self._by_name: dict[str, dict[str, T]] = {}
        self._own_writes: OwnWrites[T] = OwnWrites()
        self._subscriptions: Subscriptions[T, Callable[[T], bool]] = Subscriptions()
        self._callbacks: list[Callable[[T | None, T | None], None]] = []

    def on_change(self, callback: Callable[[T | None, T | None], None]) -> None:
        """Calls back with each object before and after a change; None is one that does not exist."""
        self._callbacks.append(callback)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._objects.values()))

    def get(self, uuid: str) -> T | None:
        """Returns an object; None if there is none."""
        return self._objects.get(uuid)

    def named(self, name: str) -> list[T]:
        """Returns the objects of a name: more than one if two managers wrote at the same time."""
        return list(self._by_name.get(name, {}).values())

    def wrote(self, uuid: str, current: T | None) -> None:
        """Applies a write of this process; None is a deletion."""
        self._own_writes.wrote(uuid, self.get(uuid), current)
        self._apply(uuid, current)

    def saw(self, uuid: str, current: T | None) -> None:
        """Applies an event of the server, unless an own write has replaced what it shows."""
        if not self._own_writes.is_outdated(uuid, current):
            self._apply(uuid, current)

    def listed(self, found: Mapping[str, T], *, newer: Collection[str] = ()) -> None:
        """Applies a list of all objects, but those that are `newer` in the cache.

        It may be older than what was written since `reopened`.
        """
        for uuid in {*self._objects, *found}.difference(newer):
            self.saw(uuid, found.get(uuid))

    def reopened(self) -> None:
        """Notes that a list is requested: it will show all writes so far."""
        self._own_writes.forget()

    def watch(
        self, *, start: WatchStart, sees: Callable[[T], bool]
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[T]]]:
        """Yields the changes of the objects that `sees` selects, until the context is left."""

        def initial() -> list[Change[T]]:
            changes: list[Change[T]] = []
            if start is WatchStart.LIST:
                changes = [Change(ChangeType.ADDED, item) for item in self if sees(item)]
                changes.append(Change(ChangeType.SYNCED, None))
            return changes

        return self._subscriptions.subscribed(initial, sees)

    def end(self) -> None:
        """Ends all watches after the changes so far."""
        self._subscriptions.end()

    def _apply(self, uuid: str, current: T | None) -> None:
        before = self.get(uuid)
        if before is not None:
            del self._objects[uuid]
            self._by_name[before.name].pop(uuid)
            if not self._by_name[before.name]:
                del self._by_name[before.name]
        if current is not None:
            self._objects[uuid] = current
            self._by_name.setdefault(current.name, {})[uuid] = current
        if before != current:
            for callback in self._callbacks:
                callback(before, current)
            for subscription in self._subscriptions:
                sees = subscription.selection
                seen = before if before is not None and sees(before) else None
                subscription.report(seen, current if current is not None and sees(current) else None)
