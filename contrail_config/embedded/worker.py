"""Worker thread that owns the store's file, and the queue through which the event loop submits operations.

SQLite calls block, so none is made in the loop. All operations pass through one queue into one thread. All operations
queued when the thread is ready share one transaction (`group_commit`), and one callback brings all results and changes
back into the loop, in commit order.

A cancelled caller stops waiting; its operation still runs completely.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from contrail_config.embedded.engine import Engine
from contrail_config.embedded.group_commit import GroupCommit, StoreOperation
from contrail_config.errors import StoreUnavailableError

_MAX_BATCH: Final = 512
"""Operations in one transaction: bounds how long the first one waits for the last one."""

T = TypeVar("T")


class Worker:
    """Creates an engine in a thread of its own and runs operations there, until `stop`."""

    def __init__(self, create_engine: Callable[[], Engine], *, name: str) -> None:
        self._name = name
        self._create_engine = create_engine
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[Engine] = self._loop.create_future()
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        self._stopping = False
        self._queue: queue.SimpleQueue[StoreOperation | None] = queue.SimpleQueue()  # None stops the thread

    async def start(self) -> Engine:
        """Starts the thread and returns the engine that it created. Raises the error of the creation."""
        # daemon: a program that ends without `stop` must not hang; committed data is safe then too.
        threading.Thread(target=self._run, name=self._name, daemon=True).start()
        try:
            return await self._started
        except asyncio.CancelledError:
            self.request_stop()  # the thread may still be opening the file, and closes it afterwards
            raise

    async def run(self, operation: Callable[[], T], *, writes: bool) -> T:
        """Runs the operation in the thread and returns its result or raises its error.

        Raises StoreUnavailableError if the worker is stopped.
        """
        if self._stopping:
            raise StoreUnavailableError(f"{self._name} is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(StoreOperation(operation, writes=writes, done=partial(_resolve, future)))
        return await future

    def post(self, read: Callable[[], T], done: Callable[[T, Exception | None], None] | None = None) -> None:
        """Queues a read without waiting; `done` is called in the loop. No effect once the worker is stopped.

        A future wakes its waiters later; `done` keeps its place in the order of the delivered changes.
        """
        if not self._stopping:
            self._queue.put(StoreOperation(read, writes=False, done=done or _ignore))

    async def stop(self) -> None:
        """Finishes the queued operations, closes the file and ends the thread. Idempotent."""
        self.request_stop()
        await asyncio.shield(self._stopped)  # a cancelled caller must not cancel the shared future

    def request_stop(self) -> None:
        """Like `stop`, without waiting."""
        if not self._stopping:
            self._stopping = True
            self._queue.put(None)

    def _run(self) -> None:
        try:
            engine = self._create_engine()
        except Exception as error:  # noqa: BLE001 - any error goes to the caller of `start`
            self._call_in_loop([partial(_resolve, self._started, None, error)])
            return
        self._call_in_loop([partial(_resolve, self._started, engine, None)])
        try:
            self._process(engine)
        except Exception as error:  # noqa: BLE001 - any error goes to the caller of `stop`
            self._call_in_loop([partial(_resolve, self._stopped, None, error)])
        else:
            self._call_in_loop([partial(_resolve, self._stopped, None, None)])

    def _process(self, engine: Engine) -> None:
        commit = GroupCommit(engine)
        with contextlib.closing(engine.database):
            while (batch := self._next_batch()) is not None:
                calls = commit.execute(batch)
                del batch  # before its callers continue: an idle worker must not keep what they drop alive
                self._call_in_loop(calls)

    def _next_batch(self) -> list[StoreOperation] | None:
        """Waits for an operation and returns it with those queued behind it; None after the last one."""
        operation = self._queue.get()
        if operation is None:
            return None
        batch = [operation]
        while len(batch) < _MAX_BATCH and not self._queue.empty():
            operation = self._queue.get()
            if operation is None:
                self._queue.put(None)  # stop after this batch
                break
            batch.append(operation)
        return batch

    def _call_in_loop(self, calls: Sequence[Callable[[], None]]) -> None:
        """Schedules the calls in the loop. If the loop is closed already, nobody waits for them."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(_call_all, calls)


def _call_all(calls: Sequence[Callable[[], None]]) -> None:
    for call in calls:
        call()


def _ignore(_result: object, _error: Exception | None) -> None:
    """Callback of operations whose outcome nobody needs."""


def _resolve(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():  # its caller was cancelled
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
