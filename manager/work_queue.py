"""A queue of keys to be worked off: one task at a time for each key, many keys at once.

Modelled on the work queue of client-go: events are not queued, only the key of what they are about, and whoever works
it off looks at the newest state. So a burst of changes to one object is one piece of work, and changes to different
objects run side by side, which lets a store write them in one transaction.

A key whose work failed is worked again after a back-off of its own, capped and jittered; this is the only retry that
work has. Not promised: an order between different keys, beyond that free slots go to the key that waits longest.
"""

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from contrail_config.kube.backoff import Backoff

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

FIRST_RETRY = 0.1
LONGEST_RETRY = 10.0
"""Seconds between a failure and the next try: doubled each time from the first to the longest, then a random part."""


class WorkQueue(Generic[K]):
    """Works keys off with `work`, at most `limit` at the same moment. Belongs to one event loop.

    `passing`: errors that pass by themselves, logged in one line; any other one is a bug and is logged with its trace.
    """

    def __init__(
        self, work: Callable[[K], Awaitable[None]], *, limit: int, passing: type[Exception] | tuple[()] = ()
    ) -> None:
        self._work = work
        self._limit = limit
        self._passing = passing
        self._context = contextvars.copy_context()  # else a task's log lines would bear the name of who added its key
        self._waiting: deque[K] = deque()
        self._queued: set[K] = set()  # what `_waiting` holds
        self._busy: dict[K, asyncio.Task[None]] = {}
        self._again: set[K] = set()  # added while being worked on
        self._failures: dict[K, Backoff] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._pauses = 0
        self._closed = False
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._busy)

    @property
    def failing(self) -> int:
        """Number of keys whose last work failed and that wait for their next try."""
        return len(self._failures)

    def add(self, key: K) -> None:
        """Has the key worked off soon: once, however often it is added before that."""
        if self._closed:
            return
        if timer := self._timers.pop(key, None):
            timer.cancel()
        if key in self._busy:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._waiting.append(key)
            self._start_more()

    def add_later(self, key: K, delay: float) -> None:
        """Has the key worked off after `delay` seconds, or sooner if it is added meanwhile."""
        due = asyncio.get_running_loop().time() + delay
        timer = self._timers.get(key)
        if self._closed or key in self._queued or (timer is not None and timer.when() <= due):
            return
        if timer is not None:
            timer.cancel()
        self._timers[key] = asyncio.get_running_loop().call_at(due, self.add, key)

    async def settled(self) -> None:
        """Returns when nothing is to be worked off now; keys that wait for a later moment do not count."""
        await self.shorter_than(1)

    async def shorter_than(self, length: int) -> None:
        """Returns when fewer keys than this are to be worked off now."""
        while len(self) >= length:
            await self._change()

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Nothing is worked on inside: what was begun is finished first, the rest waits."""
        self._pauses += 1
        try:
            while self._busy:
                await self._change()
            yield
        finally:
            self._pauses -= 1
            self._start_more()

    async def close(self) -> None:
        """Finishes what was begun, forgets the rest, and takes no more keys."""
        self._closed = True
        self._waiting.clear()
        self._queued.clear()
        for timer in self._timers.values():
            timer.cancel()
        self._changed.set()
        while self._busy:
            await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _start_more(self) -> None:
        while self._waiting and len(self._busy) < self._limit and not self._pauses:
            key = self._waiting.popleft()
            self._queued.discard(key)
            self._busy[key] = asyncio.create_task(self._work_off(key), context=self._context.copy())

    async def _work_off(self, key: K) -> None:
        self._again.discard(key)  # what was added before this first step is seen by the work that begins here
        try:
            await self._work(key)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the key is tried again and the others go on
            self._retry(key, error)
        else:
            self._failures.pop(key, None)
        finally:
            self._end(key)

    def _retry(self, key: K, error: Exception) -> None:
        backoff = self._failures.setdefault(key, Backoff(first=FIRST_RETRY, longest=LONGEST_RETRY))
        delay = backoff.next_pause()
        trace = None if isinstance(error, self._passing) else error
        log.warning("%s is tried again in %.1f s: %s", key, delay, error, exc_info=trace)
        self.add_later(key, delay)

    def _end(self, key: K) -> None:
        del self._busy[key]
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        self._start_more()
        self._changed.set()
