"""Watcher: asynchronous iterator of changes, fed by the cache of the store.

A slow consumer delays nobody: changes are queued, up to a bound. One that is so far behind ends with an error, since
skipping changes would break the guarantee that each is seen once.
"""

import asyncio
from collections import deque
from typing import Final, Generic

from contrail_config.errors import StoreUnavailableError
from contrail_config.store import Change, T_co

MAX_BEHIND: Final = 65_536
"""Changes that may be queued beyond the initial list."""


class Watcher(Generic[T_co]):
    """Asynchronous iterator of `listed` and then of what is pushed."""

    def __init__(self, listed: list[Change[T_co]]) -> None:
        self._queue: deque[Change[T_co]] = deque(listed)
        self._limit = len(listed) + MAX_BEHIND
        self._changed = asyncio.Event()
        self._ended = False
        self._error: Exception | None = None

    def __aiter__(self) -> "Watcher[T_co]":
        return self

    async def __anext__(self) -> Change[T_co]:
        while not self._queue:
            if self._ended:
                raise self._error or StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        return self._queue.popleft()

    def push(self, change: Change[T_co]) -> None:
        """Queues a change. Ends the iteration with an error if the consumer is too far behind."""
        if self._ended:
            return
        if len(self._queue) >= self._limit:
            self._queue.clear()
            self.end(StoreUnavailableError(f"watch: more than {MAX_BEHIND} changes behind"))
            return
        self._queue.append(change)
        self._changed.set()

    def end(self, error: Exception | None = None) -> None:
        """Ends the iteration after the queued changes, with an error if one is given. The first call wins."""
        if not self._ended:
            self._ended, self._error = True, error
            self._changed.set()

    def abort(self) -> None:
        """Drops the queued changes and ends the iteration."""
        self._queue.clear()
        self.end()
