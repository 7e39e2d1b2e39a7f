"""Follower: keeps the cache up to date by a watch, which is opened again when it ends.

The server cannot resume a watch: each begins with all objects, which are compared with the cache. It forgets no watch
that was closed, and keeps its queue until it is restarted, so a watch is opened again with back-off.
"""

import asyncio
import logging
from typing import Final

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.backoff import Backoff
from contrail_config.vnc.cache import FIELDS, Cache
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncError, VncUnavailableError
from contrail_config.vnc.server_sent_events import ServerEvent

log = logging.getLogger(__name__)

START_DEADLINE: Final = 60.0
"""Seconds until the first state must be there."""


class Follower:
    """Runs from `start` until `stop`. `problem` says why the cache may be out of date; None if it is not."""

    def __init__(self, client: VncClient, cache: Cache) -> None:
        self._client = client
        self._cache = cache
        self._synced = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.problem: str | None = "not started"

    async def start(self) -> None:
        """Waits for the first state. Raises StoreUnavailableError if it does not come in time."""
        self._task = asyncio.create_task(self._run())
        try:
            async with asyncio.timeout(START_DEADLINE):
                await self._synced.wait()
        except TimeoutError as error:
            await self.stop()
            raise StoreUnavailableError(f"Contrail API server: {self.problem}") from error

    async def stop(self) -> None:
        """Ends the watch. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        backoff = Backoff(first=0.2, longest=30.0)
        while True:
            try:
                await self._follow(backoff)
                raise VncUnavailableError("the server ended the watch")
            except VncError as error:
                self.problem = str(error)
                log.warning("watch: %s", error)
            await asyncio.sleep(backoff.next_pause())

    async def _follow(self, backoff: Backoff) -> None:
        missing = set(FIELDS)
        self._cache.reopened()
        async with self._client.watch(FIELDS) as events:
            async for event in events:
                self._apply(event)
                if event.event == "init":
                    missing.discard(event.kind)
                    if not missing:
                        backoff.reset()
                        self.problem = None
                        self._synced.set()

    def _apply(self, event: ServerEvent) -> None:
        if event.event == "init":
            self._cache.listed(event.kind, event.objects)
        elif event.event == "delete":
            self._cache.deleted(event.kind, event.objects[0]["uuid"])
        else:
            self._cache.changed(event.kind, event.objects[0])
