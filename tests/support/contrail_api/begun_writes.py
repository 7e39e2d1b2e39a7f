"""Writes that were begun are completed, whoever waits for them: the server does not notice a client that is gone."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BegunWrites:
    """Runs each write in a task of its own."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()  # the event loop keeps only weak references to tasks

    async def complete(self, write: Coroutine[Any, Any, T]) -> T:
        """Returns what the write returns; it goes on if the caller is cancelled."""
        task = asyncio.create_task(write)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def cancel(self) -> None:
        """Cancels what is left when the server is stopped."""
        for task in self._tasks:
            task.cancel()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # also if nobody waits for it any more
