"""Subscriptions of watchers to changes, each to those that its selection names."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Generic, NamedTuple, TypeVar

from contrail_config.store import Change, ChangeType, T_co
from contrail_config.vnc.watcher import Watcher

S = TypeVar("S")


class Subscription(NamedTuple, Generic[T_co, S]):
    """A watcher, and what it watches."""

    watcher: Watcher[T_co]
    selection: S

    def report(self, before: T_co | None, after: T_co | None) -> None:
        """Tells the watcher that an object changed, None being one that it does not see; equal ones are no change."""
        if before == after:
            return
        if after is None:
            self.watcher.push(Change(ChangeType.DELETED, before))
        else:
            self.watcher.push(Change(ChangeType.ADDED if before is None else ChangeType.MODIFIED, after))


class Subscriptions(Generic[T_co, S]):
    """Those that exist now."""

    def __init__(self) -> None:
        self._all: list[Subscription[T_co, S]] = []

    def __iter__(self) -> Iterator[Subscription[T_co, S]]:
        return iter(self._all)

    @asynccontextmanager
    async def subscribed(
        self, initial: Callable[[], list[Change[T_co]]], selection: S
    ) -> AsyncIterator[AsyncIterator[Change[T_co]]]:
        """Yields the initial changes, as they are now, and all that are reported from then on, until it is left."""
        subscription = Subscription(Watcher(initial()), selection)
        self._all.append(subscription)
        try:
            yield subscription.watcher
        finally:
            subscription.watcher.abort()
            self._all = [each for each in self._all if each is not subscription]

    def end(self) -> None:
        """Ends all watches after the changes so far."""
        for subscription in self._all:
            subscription.watcher.end()
