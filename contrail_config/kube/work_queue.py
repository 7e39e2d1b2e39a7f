"""Deduplicating work queue: one worker per key, many keys in parallel.

Modelled on the work queue of client-go: it queues the key of an object, not its events, and the worker reads the newest
state. A burst of changes to one object is therefore processed once, and different objects are processed in parallel,
which lets a store write them in one transaction.

A key that fails is retried with its own exponential back-off, capped and jittered; there is no other retry. Not
promised: an order between keys, except that free workers take the key that waits longest.

Keys that are added many at a time, perhaps again and again, can be deferred: these have a few workers of their own,
which pause after each key. So however many there are, others are started at once, and the event loop has time for them.
"""

import asyncio
import contextvars
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from contrail_config.kube.backoff import Backoff

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

DEFERRED_WORKERS = 16
DEFERRED_PAUSE = 0.02
"""Seconds for which a worker of deferred keys pauses: at most 800 of them are processed in a second."""

FIRST_RETRY = 0.1
LONGEST_RETRY = 10.0
"""Seconds between a failure and its retry: doubles from the first to the longest, then a random part is taken off."""


class WorkQueue(Generic[K]):
    """Calls `process` for each key, at most `limit` at a time, beside a few deferred ones. Belongs to one event loop.

    `transient`: errors that are expected to pass, logged in one line; any other error is a bug, logged with traceback.
    """

    def __init__(
        self, process: Callable[[K], Awaitable[None]], *, limit: int, transient: type[Exception] | tuple[()] = ()
    ) -> None:
        self._process = process
        self._limit = limit
        self._transient = transient
        # Workers run in the context of the queue: otherwise their log lines would name the object whose worker
        # happened to add the key.
        self._context = contextvars.copy_context()
        self._pending: OrderedDict[K, None] = OrderedDict()
        self._deferred: OrderedDict[K, None] = OrderedDict()
        self._active_deferred: set[K] = set()
        self._pausing = 0  # workers of deferred keys
        self._active: dict[K, asyncio.Task[None]] = {}
        self._dirty: dict[K, OrderedDict[K, None]] = {}  # added while being processed, to one of the two
        self._failures: dict[K, Backoff] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._pauses = 0
        self._closed = False
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._pending) + len(self._deferred) + len(self._active)

    def __contains__(self, key: object) -> bool:
        """Whether the key is queued or being processed; one that is scheduled for later is not."""
        return key in self._pending or key in self._deferred or key in self._active

    @property
    def keys(self) -> list[K]:
        """The keys that are queued or being processed."""
        return [*self._pending, *self._deferred, *self._active]

    @property
    def failing(self) -> int:
        """Number of keys that failed and wait for their retry."""
        return len(self._failures)

    @property
    def scheduled(self) -> dict[K, float]:
        """Keys that are added later, with the time of the event loop at which they are."""
        return {key: timer.when() for key, timer in self._timers.items()}

    def is_waiting(self, key: K) -> bool:
        """Whether the key is queued or scheduled for later, whether or not it is being processed."""
        return key in self._pending or key in self._deferred or key in self._timers

    def add(self, key: K) -> None:
        """Queues the key; a key that is queued already is processed once."""
        self._add(key, self._pending)

    def add_deferred(self, key: K) -> None:
        """Queues the key as one of those of which a few are processed at a time."""
        self._add(key, self._deferred)

    def add_after(self, key: K, delay: float) -> None:
        """Queues the key after `delay` seconds, or earlier if it is added before."""
        self._add_after(key, delay, self._pending)

    async def idle(self) -> None:
        """Returns when no key is queued or being processed; keys scheduled for later do not count."""
        while len(self):
            await self.wait_for_change()

    async def processed(self, keys: Collection[K]) -> None:
        """Returns when none of these keys is queued or being processed."""
        while any(key in self for key in keys):
            await self.wait_for_change()

    async def shorter_than(self, length: int) -> None:
        """Returns when fewer than `length` keys are queued or being processed; deferred ones that wait do not count."""
        while len(self._pending) + len(self._active) >= length:
            await self.wait_for_change()

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Finishes the keys being processed, and starts no other inside the context."""
        self._pauses += 1  # counted, since pauses may overlap
        try:
            while self._active:
                await self.wait_for_change()
            yield
        finally:
            self._pauses -= 1
            self._start_workers()

    async def close(self) -> None:
        """Finishes the keys being processed, drops the others, and ignores keys added later."""
        self._closed = True
        self._pending.clear()
        self._deferred.clear()
        for timer in self._timers.values():
            timer.cancel()
        self._changed.set()  # for waiters in `idle` and `shorter_than`: dropped keys count no more
        while self._active:
            await self.wait_for_change()

    async def wait_for_change(self) -> None:
        """Returns when the next key has been processed, or the queue is closed."""
        # Nothing is awaited between a caller's check and the clear, so no change can be missed.
        self._changed.clear()
        await self._changed.wait()

    def _add(self, key: K, keys: OrderedDict[K, None]) -> None:
        if self._closed:
            return
        if timer := self._timers.pop(key, None):
            timer.cancel()
        if key in self._active:
            # Two workers on one key would race, and the active one may have read an older state: run it once more.
            if self._dirty.get(key) is not self._pending:
                self._dirty[key] = keys
        elif key not in self._pending:
            if keys is self._pending:
                self._deferred.pop(key, None)
            keys.setdefault(key)
            self._start_workers()

    def _add_after(self, key: K, delay: float, keys: OrderedDict[K, None]) -> None:
        due = asyncio.get_running_loop().time() + delay
        timer = self._timers.get(key)
        if self._closed or key in self._pending or key in self._deferred or (timer and timer.when() <= due):
            return  # processed earlier anyway
        if timer is not None:
            timer.cancel()
        self._timers[key] = asyncio.get_running_loop().call_at(due, self._add, key, keys)

    def _start_workers(self) -> None:
        most = self._limit + len(self._active_deferred)  # deferred keys take no place of others
        while self._pending and len(self._active) < most and not self._pauses:
            self._start_worker(self._pending)
        most = min(self._limit, DEFERRED_WORKERS)
        while self._deferred and len(self._active_deferred) + self._pausing < most and not self._pauses:
            self._active_deferred.add(self._start_worker(self._deferred))

    def _end_pause(self) -> None:
        self._pausing -= 1
        self._start_workers()

    def _start_worker(self, keys: OrderedDict[K, None]) -> K:
        key, _ = keys.popitem(last=False)
        worker = self._active[key] = asyncio.create_task(self._work(key), context=self._context.copy())
        worker.add_done_callback(lambda worker: self._finish_unstarted(key, worker))
        return key

    def _finish_unstarted(self, key: K, worker: asyncio.Task[None]) -> None:
        """Finishes a key whose worker was cancelled before its first step, as an event loop that ends does."""
        if self._active.get(key) is worker:
            self._finish(key)

    async def _work(self, key: K) -> None:
        # A key added between the creation of this task and its first step needs no second run: this one sees its state.
        self._dirty.pop(key, None)
        try:
            await self._process(key)
        except Exception as error:  # noqa: BLE001 - any failure is retried and must not affect other keys
            self._retry(key, error)
        else:
            self._failures.pop(key, None)  # only success resets the back-off, not an `add` in between
        finally:
            self._finish(key)

    def _retry(self, key: K, error: Exception) -> None:
        backoff = self._failures.setdefault(key, Backoff(first=FIRST_RETRY, longest=LONGEST_RETRY))
        delay = backoff.next_pause()
        trace = None if isinstance(error, self._transient) else error
        log.warning("%s: retry in %.1f s: %s", key, delay, error, exc_info=trace)
        self._add_after(key, delay, self._deferred if key in self._active_deferred else self._pending)

    def _finish(self, key: K) -> None:
        del self._active[key]
        if key in self._active_deferred:
            self._active_deferred.discard(key)
            self._pausing += 1
            asyncio.get_running_loop().call_later(DEFERRED_PAUSE, self._end_pause)
        if (keys := self._dirty.pop(key, None)) is not None:
            self._add(key, keys)
        self._start_workers()
        self._changed.set()
