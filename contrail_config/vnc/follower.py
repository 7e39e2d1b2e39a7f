"""Follower: keeps the cache up to date by a watch, which is opened again when it ends.

The server cannot resume a watch: each begins with all objects, which are compared with the cache. It forgets no watch
that was closed, and keeps its queue until it is restarted, so a watch is opened again with back-off, which starts over
only after a watch that lasted: a balancer may end each after a moment. An event may be lost without a sign, so all
objects are listed and compared from time to time. A server before R2008 has no watch: all objects are listed more often
then. Whatever a server or a balancer answers, it is reported and asked again.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.backoff import Backoff
from contrail_config.vnc.cache import FIELDS, Cache
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncError, VncUnavailableError
from contrail_config.vnc.server_sent_events import ServerEvent

log = logging.getLogger(__name__)

START_DEADLINE: Final = 60.0
"""Seconds until the first state must be there."""

COMPARISON_INTERVAL: Final = 600.0
"""Seconds between lists of all objects beside a watch."""

LASTING: Final = 10.0
"""Seconds after which a watch or a series of lists was good: what fails sooner is tried again less and less often."""

POLL_INTERVAL: Final = 10.0
"""Seconds between lists of all objects where the server has no watch."""


class Intervals(NamedTuple):
    """Seconds between lists of all objects, beside a watch and without one."""

    comparison: float = COMPARISON_INTERVAL
    poll: float = POLL_INTERVAL


DEFAULT_INTERVALS: Final = Intervals()


class Follower:
    """Follows the types of `fields` from `start` until `stop`.

    `problem` says why the cache may be out of date; None if it is not.
    """

    def __init__(
        self,
        client: VncClient,
        cache: Cache,
        intervals: Intervals = DEFAULT_INTERVALS,
        *,
        fields: Mapping[str, Sequence[str]] = FIELDS,
    ) -> None:
        self._client = client
        self._cache = cache
        self._intervals = intervals
        self._fields = fields
        self._heard: list[Callable[[], None]] = []  # of each type, from the first watch on
        self._synced = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._good_since: float | None = None  # by the event loop's clock
        self.problem: str | None = "Contrail API server: not listed yet"

    def start(self) -> None:
        """Begins to follow. Idempotent."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def wait_until_synced(self) -> None:
        """Waits for the first state. Raises StoreUnavailableError if it does not come in time."""
        try:
            async with asyncio.timeout(START_DEADLINE):
                await self._synced.wait()
        except TimeoutError as error:
            raise StoreUnavailableError(str(self.problem)) from error

    async def stop(self) -> None:
        """Ends the watch. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        backoff = Backoff(first=0.2, longest=30.0)
        with contextlib.ExitStack() as watching:
            while True:
                self._good_since = None
                try:
                    await self._follow(watching)
                except VncError as error:
                    self.problem = f"Contrail API server: {error}"
                    log.warning("Contrail API server: %s", error)
                except Exception as error:  # a task that ends would leave the cache as it is, unnoticed
                    self.problem = f"Contrail API server: unexpected answer: {error!r}"
                    log.exception("Contrail API server: unexpected answer")
                if self._has_lasted():
                    backoff.reset()
                await asyncio.sleep(backoff.next_pause())

    def _has_lasted(self) -> bool:
        """Whether what has ended was good for long enough."""
        return self._good_since is not None and asyncio.get_running_loop().time() >= self._good_since + LASTING

    async def _follow(self, watching: contextlib.ExitStack) -> NoReturn:
        if not await self._client.has_watch():
            await self._poll(self._intervals.poll)
        if not self._heard:  # not before: without a watch there is no age of one
            self._heard = [watching.enter_context(self._client.watching(kind)) for kind in self._fields]
        comparison = asyncio.create_task(self._compare())
        try:
            await self._watch()
        finally:
            comparison.cancel()
            await asyncio.wait([comparison])

    def _note_event(self) -> None:
        for heard in self._heard:  # one stream has all types
            heard()

    async def _watch(self) -> NoReturn:
        missing = set(self._fields)
        self._cache.reopened()
        async with self._client.watch(self._fields, heard=self._note_event) as events:
            async for event in events:
                self._apply(event)
                if event.event == "init":
                    missing.discard(event.kind)
                    if not missing:
                        self._up_to_date()
        raise VncUnavailableError("the server ended the watch")

    async def _poll(self, interval: float) -> NoReturn:
        while True:
            self._cache.reopened()
            for kind, fields in self._fields.items():
                self._cache.listed(kind, await self._client.list_all(kind, fields=fields))
            self._up_to_date()
            await asyncio.sleep(interval)

    async def _compare(self) -> None:
        while True:
            await asyncio.sleep(self._intervals.comparison)
            try:
                for kind, fields in self._fields.items():
                    self._cache.comparing()
                    self._cache.compared(kind, await self._client.list_all(kind, fields=fields))
            except VncError as error:
                log.warning("comparison with the server: %s", error)
            except Exception:  # as in _run: no comparison would follow
                log.exception("comparison with the server: unexpected answer")

    def _up_to_date(self) -> None:
        if self._good_since is None:
            self._good_since = asyncio.get_running_loop().time()
        self.problem = None
        self._synced.set()

    def _apply(self, event: ServerEvent) -> None:
        if event.event == "init":
            self._cache.listed(event.kind, event.objects)
        elif event.event == "delete":
            self._cache.deleted(event.kind, event.objects[0]["uuid"])
        else:
            self._cache.changed(event.kind, event.objects[0])
