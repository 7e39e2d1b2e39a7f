"""Makes changes one after the other, each to its end.

What a change does is decided only when the one before is done, and a change that was begun is finished even if the
client who asked for it hangs up: what is on disk and what is in memory never differ by half a change.
"""

import asyncio
from collections.abc import Awaitable, Callable

from agent_api.errors import NotReadyError

Change = Callable[[], Awaitable[None]]


class Changes:
    """The changes of one table; none is made before it is `loaded`."""

    def __init__(self) -> None:
        self.loaded = False
        self._one_at_a_time = asyncio.Lock()
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def none_under_way(self) -> bool:
        """Whether a change could be made at once."""
        return self.loaded and not self._under_way

    async def make(self, change: Change) -> None:
        """Makes a change and returns when it is done. Raises what it raises, and NotReadyError."""
        self.check_loaded()
        task = asyncio.create_task(self._in_turn(change))
        self._under_way.add(task)  # the loop itself keeps tasks by weak references alone
        task.add_done_callback(self._under_way.discard)
        await asyncio.shield(task)

    def check_loaded(self) -> None:
        """Raises NotReadyError if what an earlier process kept is not there yet."""
        if not self.loaded:
            raise NotReadyError("the ports are not reloaded yet")

    async def _in_turn(self, change: Change) -> None:
        async with self._one_at_a_time:
            await change()
