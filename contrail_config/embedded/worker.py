"""The thread that owns the store's file, and how the event loop hands it work.

SQLite calls block, so none is made in the loop. All operations pass through one queue into one thread; whatever waits
there when the thread is ready is done in one transaction (`group_commit`), and one call brings all results and changes
back into the loop, in the order in which they were committed.

A caller that is cancelled stops waiting; its operation is done all the same, whole.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from contrail_config.embedded.engine import Engine
from contrail_config.embedded.group_commit import GroupCommit, Job
from contrail_config.errors import StoreUnavailableError

_MAX_BATCH: Final = 512
"""Operations in one transaction: bounds how long the first of them waits for the last."""

T = TypeVar("T")


class Worker:
    """Makes an engine in a thread of its own and runs operations on it there, until `stop`."""

    def __init__(self, make_engine: Callable[[], Engine], *, name: str) -> None:
        self._name = name
        self._make_engine = make_engine
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[Engine] = self._loop.create_future()
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        self._stopping = False
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()  # None ends it

    async def start(self) -> Engine:
        """Starts the thread and returns the engine that it made. Raises what making it raised."""
        threading.Thread(target=self._run, name=self._name, daemon=True).start()
        try:
            return await self._started
        except asyncio.CancelledError:
            self._ask_to_stop()
            raise

    async def run(self, operation: Callable[[], T], *, writes: bool) -> T:
        """Has the operation done and returns its result or raises its error.

        Raises StoreUnavailableError if the worker was stopped.
        """
        if self._stopping:
            raise StoreUnavailableError(f"{self._name} is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(Job(operation, writes=writes, done=partial(_settle, future)))
        return await future

    def post(self, read: Callable[[], T], done: Callable[[T, Exception | None], None] | None = None) -> None:
        """Has something read, without waiting; `done` is called in the loop. Means nothing once the worker is stopped.

        Unlike a future, which wakes its callers later, `done` keeps its place among the changes that are told.
        """
        if not self._stopping:
            self._queue.put(Job(read, writes=False, done=done or _ignore))

    async def stop(self) -> None:
        """Has done what was asked for before, then closes the file and ends the thread. Repeatable."""
        self._ask_to_stop()
        await asyncio.shield(self._stopped)

    def _ask_to_stop(self) -> None:
        if not self._stopping:
            self._stopping = True
            self._queue.put(None)

    def _run(self) -> None:
        try:
            engine = self._make_engine()
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever opens the store shall have it
            self._tell([partial(_settle, self._started, None, error)])
            return
        self._tell([partial(_settle, self._started, engine, None)])
        try:
            self._serve(engine)
        except Exception as error:  # noqa: BLE001 - likewise whoever closes it
            self._tell([partial(_settle, self._stopped, None, error)])
        else:
            self._tell([partial(_settle, self._stopped, None, None)])

    def _serve(self, engine: Engine) -> None:
        commit = GroupCommit(engine)
        with contextlib.closing(engine.database):
            while (batch := self._next_batch()) is not None:
                self._tell(commit.execute(batch))

    def _next_batch(self) -> list[Job] | None:
        """Waits for a job and takes all that wait behind it; None when the last one was taken before."""
        job = self._queue.get()
        if job is None:
            return None
        batch = [job]
        while len(batch) < _MAX_BATCH and not self._queue.empty():
            job = self._queue.get()
            if job is None:
                self._queue.put(None)
                break
            batch.append(job)
        return batch

    def _tell(self, calls: Sequence[Callable[[], None]]) -> None:
        """Has the calls made in the loop; one that was closed under the store has nobody who waits for them."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(_make_all, calls)


def _make_all(calls: Sequence[Callable[[], None]]) -> None:
    for call in calls:
        call()


def _ignore(_result: object, _error: Exception | None) -> None:
    """For jobs whose end nobody waits for."""


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():  # its caller was cancelled
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
