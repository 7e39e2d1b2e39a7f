"""A piece of work that is done once for all who ask for it meanwhile, and goes on when they give up.

What takes longer than each of them waits for would else be begun again and again, and never end. What came of it is for
the next one who asks, if nobody waited for it any more: its failure, too, which else nobody would hear of.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

S = TypeVar("S")


class SingleFlight(Generic[S]):
    """Runs of `work`, which bounds its time by itself. Belongs to one event loop; `end` leaves nothing running."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, S]]) -> None:
        self._work = work
        self._run: asyncio.Task[S] | None = None

    async def outcome(self) -> S:
        """Returns or raises what comes of the run that is under way, or of a new one."""
        while True:
            run = self._run = self._run or self._begin()
            await asyncio.wait([run])
            if self._run is run:
                self._run = None
            if not run.cancelled():  # else others ended it, who have no use for it any more
                return run.result()

    async def end(self) -> None:
        """Ends the run that is under way, and returns when it has ended."""
        if self._run is not None:
            self._run.cancel()
            await asyncio.wait([self._run])
            self._run = None

    def _begin(self) -> asyncio.Task[S]:
        run = asyncio.create_task(self._work())
        run.add_done_callback(_hear)
        return run


def _hear(run: asyncio.Task[Any]) -> None:
    """Has asyncio not complain of a failure that nobody waited for."""
    with contextlib.suppress(asyncio.CancelledError):
        run.exception()
