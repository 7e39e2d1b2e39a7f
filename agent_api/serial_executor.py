"""Serial executor: runs the changes of one table one at a time, each to completion.

A change decides what to do only after the previous one has finished. A started change completes even if the client that
requested it disconnects; otherwise disk and memory could differ by half a change.
"""

import asyncio
from collections.abc import Awaitable, Callable

from agent_api.errors import NotReadyError


class SerialExecutor:
    """Runs the changes of one table; rejects all until `loaded` is set."""

    def __init__(self) -> None:
        self.loaded = False
        self._lock = asyncio.Lock()
        self._pending: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """The number of changes that are running or queued."""
        return len(self._pending)

    @property
    def is_idle(self) -> bool:
        """Whether no change is running or queued, so that one may be made synchronously."""
        return self.loaded and not self._pending

    async def run(self, change: Callable[[], Awaitable[None]]) -> None:
        """Runs a change and waits for its end. Raises what it raises, and NotReadyError."""
        self.check_loaded()
        task = asyncio.create_task(self._run_locked(change))
        self._pending.add(task)  # the event loop keeps only weak references to tasks
        task.add_done_callback(self._pending.discard)
        await asyncio.shield(task)  # cancellation of the request must not cancel the change

    def check_loaded(self) -> None:
        """Raises NotReadyError until the persisted state is loaded."""
        if not self.loaded:
            raise NotReadyError("ports: not loaded yet")

    async def _run_locked(self, change: Callable[[], Awaitable[None]]) -> None:
        async with self._lock:
            await change()
