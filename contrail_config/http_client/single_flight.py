"""Single flight: concurrent callers share one run of a function.

Named after Go's `singleflight`. A run outlives its waiters; otherwise short timeouts would restart it forever. If
nobody waits for a run any more, the next caller gets its result, also a failure, which would otherwise go unreported.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

S = TypeVar("S")


class SingleFlight(Generic[S]):
    """Runs `work`, which must bound its own time, at most once at a time. Belongs to one event loop."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, S]]) -> None:
        self._work = work
        self._run: asyncio.Task[S] | None = None

    async def do(self) -> S:
        """Returns or raises the outcome of the run in flight, or of a new one."""
        while True:
            run = self._run = self._run or self._start()
            await asyncio.wait([run])  # unlike awaiting the task, this does not cancel it if the caller is cancelled
            if self._run is run:  # else another waiter was first, and may have started a new run
                self._run = None
            if not run.cancelled():  # otherwise `close` cancelled it on behalf of another caller: run again
                return run.result()

    async def close(self) -> None:
        """Cancels the run in flight and waits until it has ended."""
        if self._run is not None:
            self._run.cancel()
            await asyncio.wait([self._run])
            self._run = None

    def _start(self) -> asyncio.Task[S]:
        run = asyncio.create_task(self._work())
        run.add_done_callback(_retrieve_exception)
        return run


def _retrieve_exception(run: asyncio.Task[Any]) -> None:
    """Prevents asyncio's warning about an exception that was never retrieved."""
    with contextlib.suppress(asyncio.CancelledError):
        run.exception()
