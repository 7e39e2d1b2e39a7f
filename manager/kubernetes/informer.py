"""Informer: follows one kind in a task of its own, and relists it on demand without missing a change."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from contrail_config.kube.object_cache import Listed, ObjectChange
from contrail_config.kube.reflector import Reflector
from contrail_config.kube.resource import KubeObject

T = TypeVar("T", bound=KubeObject)


class Informer(Generic[T]):
    """Calls `on_change` with each change, in order, and `on_end` with the task, should it end by itself.

    `on_change` is synchronous, so that no cancellation can come between the reflector's cache taking a change and its
    delivery. `complete`: whether all objects of the newest list could be decoded, None until it is delivered.
    """

    def __init__(
        self,
        reflector: Reflector[T],
        *,
        on_change: Callable[[ObjectChange[T]], None],
        on_end: Callable[[asyncio.Task[None]], None],
    ) -> None:
        self._reflector = reflector
        self._on_change = on_change
        self._on_end = on_end
        self._task: asyncio.Task[None] | None = None
        self._listed = asyncio.Event()
        self.complete: bool | None = None

    @property
    def problem(self) -> str | None:
        """Why the delivered objects are not up to date, None if they are."""
        return self._reflector.problem

    async def relist(self) -> None:
        """Starts a new list, whatever is in progress, and follows the changes after it."""
        await self.stop()
        self.complete = None
        self._listed.clear()
        self._reflector.relist()
        self._task = asyncio.create_task(self._follow())
        self._task.add_done_callback(self._on_end)

    async def wait_until_listed(self) -> None:
        """Returns when the newest list is delivered."""
        await self._listed.wait()

    async def stop(self) -> None:
        """Stops following until the next relist."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])  # does not raise: `on_end` has reported an error

    async def _follow(self) -> None:
        async with self._reflector.changes() as changes:
            async for change in changes:
                if isinstance(change, Listed):
                    self.complete = change.complete
                    self._listed.set()
                self._on_change(change)
