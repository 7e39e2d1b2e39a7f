"""Keeps a copy of all objects of one kind in step with the server, from the first time that it is needed.

The copy may lag behind, by milliseconds or, while the server cannot be reached, by more. So nothing that must hold for
certain is concluded from it alone.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.object_cache import Change, Listed
from contrail_config.kube.reflector import Reflector
from contrail_config.kube.resource import KubeObject, Resource

log = logging.getLogger(__name__)

DEADLINE = 60.0
"""Seconds for the first list."""

T = TypeVar("T", bound=KubeObject)


class Informer(Generic[T]):
    """Applies each change as it comes."""

    def __init__(self, client: KubeClient, resource: Resource[T], apply: Callable[[Change[T]], None]) -> None:
        self._client = client
        self._resource = resource
        self._apply = apply
        self._reflector = Reflector(client, resource)
        self._listed = asyncio.Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    async def ready(self) -> None:
        """Returns when everything was listed once. A copy that broke down is begun anew.

        Raises StoreUnavailableError if that takes too long, or once it is closed.
        """
        self._refuse_closed()
        if self._task is None or self._task.done():
            self._listed.clear()
            self._reflector = Reflector(self._client, self._resource)
            self._task = asyncio.create_task(self._follow())
        try:
            async with asyncio.timeout(DEADLINE):
                await self._listed.wait()
        except TimeoutError as error:
            raise StoreUnavailableError(str(self._reflector.problem)) from error
        self._refuse_closed()

    async def close(self) -> None:
        """Follows no more, for good."""
        self._closed = True
        self._listed.set()  # who waits for it is told
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreUnavailableError("the store is closed")

    async def _follow(self) -> None:
        try:
            async with self._reflector.changes() as changes:
                async for change in changes:
                    self._apply(change)
                    if isinstance(change, Listed):
                        self._listed.set()
                    await asyncio.sleep(0)  # a page of a long list comes at once, and others have work to do
        except Exception:
            log.exception("the copy of %s broke down", self._resource.plural)
