"""Informer: follows all objects of one kind with list and watch, and applies each change. Starts on first use.

What it has applied may lag behind the server, by milliseconds, or by more while the server is unreachable. So nothing
that must be certain is derived from it alone.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.object_cache import Listed, ObjectChange
from contrail_config.kube.reflector import Reflector
from contrail_config.kube.resource import KubeObject, Resource

log = logging.getLogger(__name__)

DEADLINE = 60.0
"""Timeout in seconds of the first list."""

T = TypeVar("T", bound=KubeObject)


class Informer(Generic[T]):
    """Calls `apply` for each change of the resource, in a task of its own."""

    def __init__(self, client: KubeClient, resource: Resource[T], apply: Callable[[ObjectChange[T]], None]) -> None:
        self._client = client
        self._resource = resource
        self._apply = apply
        self._reflector = Reflector(client, resource)
        self._listed = asyncio.Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    async def wait_until_synced(self) -> None:
        """Waits until all objects were listed once. Starts the informer, or restarts it after an unexpected error.

        Raises StoreUnavailableError after DEADLINE, or if it is closed.
        """
        self._check_open()
        if self._task is None or self._task.done():
            self._listed.clear()  # after an unexpected error: everything must be listed again
            self._reflector = Reflector(self._client, self._resource)
            self._task = asyncio.create_task(self._run())
        try:
            async with asyncio.timeout(DEADLINE):
                await self._listed.wait()
        except TimeoutError as error:
            raise StoreUnavailableError(str(self._reflector.problem)) from error
        self._check_open()

    async def close(self) -> None:
        """Stops for good."""
        self._closed = True
        self._listed.set()  # wakes those that wait, which then raise
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailableError("the store is closed")

    async def _run(self) -> None:
        try:
            async with self._reflector.changes() as changes:
                async for change in changes:
                    self._apply(change)
                    if isinstance(change, Listed):
                        self._listed.set()
                    await asyncio.sleep(0)  # a page of a long list arrives at once; let other tasks run
        except Exception:
            log.exception("informer of %s: unexpected error", self._resource.plural)
