"""Follows one kind in a task of its own, and lists it anew on demand without losing anything."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from contrail_config.kube.object_cache import Change, Listed
from contrail_config.kube.reflector import Reflector
from contrail_config.kube.resource import KubeObject

T = TypeVar("T", bound=KubeObject)


class Informer(Generic[T]):
    """Calls `tell` with each change, in order, and `ended` with the task, should it ever end by itself.

    `tell` does not wait: between the moment at which the reflector takes note of a change and that at which it is told,
    nothing can be cancelled. `complete`: whether all of the newest list could be read, None until it is told.
    """

    def __init__(
        self,
        reflector: Reflector[T],
        *,
        tell: Callable[[Change[T]], None],
        ended: Callable[[asyncio.Task[None]], None],
    ) -> None:
        self._reflector = reflector
        self._tell = tell
        self._ended = ended
        self._task: asyncio.Task[None] | None = None
        self._listed = asyncio.Event()
        self.complete: bool | None = None

    @property
    def problem(self) -> str | None:
        """Why what was told is not up to date, None if it is."""
        return self._reflector.problem

    async def relist(self) -> None:
        """Begins a list, whatever was under way, and follows what changes after it."""
        await self.stop()
        self.complete = None
        self._listed.clear()
        self._reflector.relist()
        self._task = asyncio.create_task(self._follow())
        self._task.add_done_callback(self._ended)

    async def listed(self) -> None:
        """Returns when the newest list was told."""
        await self._listed.wait()

    async def stop(self) -> None:
        """Follows no more, for the time being."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _follow(self) -> None:
        async with self._reflector.changes() as changes:
            async for change in changes:
                if isinstance(change, Listed):
                    self.complete = change.complete
                    self._listed.set()
                self._tell(change)
