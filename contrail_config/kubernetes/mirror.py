"""Keeps a copy of all objects of one kind in step with the server, from the first time that it is needed.

The copy may lag behind, by milliseconds or, while the server cannot be reached, by more. So nothing that must hold for
certain is concluded from it alone.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.reflector import Reflector
from contrail_config.kube.resource import KubeObject
from contrail_config.kube.view import Change, Listed

DEADLINE = 60.0
"""Seconds for the first list."""

T = TypeVar("T", bound=KubeObject)


class Mirror(Generic[T]):
    """Applies each change as it comes; `what` names the kind in errors."""

    def __init__(self, reflector: Reflector[T], apply: Callable[[Change[T]], None], *, what: str) -> None:
        self._reflector = reflector
        self._apply = apply
        self._what = what
        self._listed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def ready(self) -> None:
        """Returns when everything was listed once. Raises StoreUnavailableError if that takes too long."""
        if self._task is None:
            self._task = asyncio.create_task(self._follow())
        try:
            async with asyncio.timeout(DEADLINE):
                await self._listed.wait()
        except TimeoutError as error:
            raise StoreUnavailableError(f"{self._what}: {self._reflector.problem}") from error

    async def close(self) -> None:
        """Follows no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _follow(self) -> None:
        async with self._reflector.changes() as changes:
            async for change in changes:
                self._apply(change)
                if isinstance(change, Listed):
                    self._listed.set()
