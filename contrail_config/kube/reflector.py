"""Reflector: lists and watches all objects of one kind forever, and yields every change without losing one.

As in client-go: it lists once, then watches from the list's resourceVersion. A watch that ends is resumed from the last
version seen. If that version is gone (410), the watch fell silent, or an error is not transient, the objects are listed
again; the difference to the cache is yielded as changes, including deletions with the last known state. Unchanged
objects are not yielded again. The backoff grows until a watch works, not just a list: lists cost the server most, and
they succeed even where every watch fails. It starts over, once until a watch works, when a watch is rejected with 410:
after failures to connect that is how a server shows that it is back, with a history that began while it was away.

Reflectors that exist once per node lose their watches together, when an API server restarts. They list again
`from_cache`, no older than what they have seen but without etcd, and each at a moment of its own.

It is a single generator without a task or queue, so a slow consumer slows down the connection (backpressure) instead of
filling memory. A consumer that stops in the middle and returns gets the changes that it has not seen. The cache keeps
only the fields of the resource's struct, and fewer with another `ReflectorCache`.

Not promised: every intermediate state, since two changes during an interrupted watch may be merged; and noticing that
the server's history started over (etcd emptied) once it has become as long as before.
"""

import asyncio
import contextlib
import itertools
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

from contrail_config.kube.backoff import Backoff
from contrail_config.kube.client import LONGER_PAGES, KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import (
    KubeConfigurationError,
    KubeError,
    KubeForbiddenError,
    KubeFutureVersionError,
    KubeGoneError,
    KubeUnauthorizedError,
    KubeUnavailableError,
)
from contrail_config.kube.object_cache import Key, ObjectCache, ObjectChange, ReflectorCache
from contrail_config.kube.paging import PAGE_LENGTH
from contrail_config.kube.resource import KubeObject, Resource
from contrail_config.kube.selector import EVERYTHING, Selector
from contrail_config.kube.watch import WatchEvent

log = logging.getLogger(__name__)

T = TypeVar("T", bound=KubeObject)


_RESUMED = (KubeUnavailableError, KubeUnauthorizedError, KubeForbiddenError, KubeConfigurationError)
"""Errors after which the watch resumes without a list; a server that starts rejects everybody for a moment."""


class ReflectorTimings(msgspec.Struct, frozen=True):
    """Times in seconds, and the number of objects per page."""

    watch_length: tuple[float, float] = (300.0, 600.0)  # random, so that not all watches end at the same time
    silence: float = 150.0  # without any event; a server sends bookmarks about once a minute
    short_watch: float = 1.0  # a watch that ends sooner, without an event, counts as a failure
    long_watch: float = 5.0  # a watch that lasts this long counts as a success, even without an event
    relist_spread: float = 0.0  # a list after a failed watch begins at a random moment within so many seconds
    first_pause: float = 0.8
    longest_pause: float = 30.0
    page_length: int = PAGE_LENGTH


_TIMINGS = ReflectorTimings()


async def _at_once() -> None:
    """Awaits nothing."""


class Reflector(Generic[T]):
    """Reflector of one kind. `problem`: why the cache is not up to date, None if it is.

    `before_list` is awaited before each list; if it raises KubeError, the list is retried later. With `since`, changes
    start after that resourceVersion, without an initial list. `cache` belongs to the reflector. `from_cache`: lists
    after the first one are answered from the server's watch cache, as one page.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource[T],
        selector: Selector = EVERYTHING,
        *,
        timings: ReflectorTimings = _TIMINGS,
        before_list: Callable[[], Awaitable[None]] = _at_once,
        since: str | None = None,
        cache: ReflectorCache[T] | None = None,
        from_cache: bool = False,
    ) -> None:
        self._client = client
        self._resource = resource
        self._selector = selector
        self._timings = timings
        self._before_list = before_list
        self._backoff = Backoff(first=timings.first_pause, longest=timings.longest_pause)
        self._cache: ReflectorCache[T] = ObjectCache() if cache is None else cache
        self._since = since  # None: list first
        self._has_expired = False  # whether a version has, since a watch last worked
        self._from_cache = from_cache
        self._seen = since  # newest version seen; None: a list must be of the newest state
        self._page_length = timings.page_length
        self.problem: str | None = f"{resource.plural}: not listed yet" if since is None else None

    @property
    def objects(self) -> Mapping[Key, T]:
        """The cached objects by namespace and name."""
        return self._cache.objects

    @property
    def undecodable(self) -> Mapping[Key, UndecodableObject]:
        """The objects that exist and are undecodable now."""
        return self._cache.undecodable

    @contextlib.asynccontextmanager
    async def changes(self) -> AsyncIterator[AsyncIterator[ObjectChange[T]]]:
        """Yields all changes in order until the context is left; when entered again, continues from there."""
        async with contextlib.aclosing(self._run()) as changes:
            yield changes

    def relist(self) -> None:
        """Makes the next `changes` start with a list."""
        self._since = None

    async def _run(self) -> AsyncGenerator[ObjectChange[T], None]:
        with self._client.watching(self._resource) as heard:
            while True:
                step = self._list() if self._since is None else self._watch(self._since, heard)
                try:
                    # closed explicitly: else the connection of an abandoned generator stays open until it is collected
                    async with contextlib.aclosing(step) as changes:
                        async for change in changes:
                            yield change
                except _RESUMED as error:
                    await self._back_off(error)
                except KubeError as error:  # 410, silence, undecodable events: events may be lost
                    spread = 0.0
                    if self._since is not None:  # a watch failed, not a list
                        spread = self._timings.relist_spread
                        self._reset_backoff_at_first_expiry(error)
                    self._since = None
                    pause = random.uniform(0.0, spread)  # noqa: S311 - jitter needs no secrecy
                    await self._back_off(error, at_least=pause)

    def _reset_backoff_at_first_expiry(self, error: KubeError) -> None:
        """Resets the backoff at the first 410 since a watch last worked."""
        if isinstance(error, KubeGoneError) and not self._has_expired:
            self._backoff.reset()
            self._has_expired = True

    async def _list(self) -> AsyncGenerator[ObjectChange[T], None]:
        await self._before_list()
        self._cache.begin_list()
        version = ""
        with self._adapting_list():
            not_older_than = self._seen if self._from_cache else None
            pages = self._client.pages(
                self._resource, self._selector, length=self._page_length, not_older_than=not_older_than
            )
            async with contextlib.aclosing(pages):
                async for page in pages:
                    version = page.resource_version
                    for change in itertools.chain.from_iterable(map(self._cache.add_listed, page.items)):
                        yield change
        self.problem = None
        for change in self._cache.end_list():
            yield change
        self._seen = version
        self._since = version  # only now: a consumer that left in the middle gets the rest from a new list

    @contextlib.contextmanager
    def _adapting_list(self) -> Iterator[None]:
        """Makes the next list fit what this one fails of."""
        try:
            yield
        except KubeGoneError:  # the snapshot expired before the last page
            self._page_length = min(self._page_length * LONGER_PAGES, self._timings.page_length * LONGER_PAGES**2)
            raise
        except KubeFutureVersionError:  # etcd was restored: what has been seen counts no more
            self._seen = None
            raise
        self._page_length = self._timings.page_length

    async def _watch(self, since: str, heard: Callable[[], None]) -> AsyncGenerator[ObjectChange[T], None]:
        began = asyncio.get_running_loop().time()
        seconds = random.uniform(*self._timings.watch_length)  # noqa: S311 - jitter needs no secrecy
        async with self._client.watch(
            self._resource, self._selector, since=since, seconds=seconds, heard=heard
        ) as events:
            self.problem = None  # the server accepted the version, so the cache is up to date or catching up
            with self._reset_backoff_if_long():
                while (event := await self._next(events)) is not None:
                    for change in self._cache.apply_event(event):
                        yield change
                    # after the yields: a consumer that leaves in between gets the rest of the event from the next watch
                    self._advance(event.metadata.resource_version)
        # a server or proxy that ends every watch at once would otherwise be called in a tight loop
        if self._since == since and asyncio.get_running_loop().time() - began < self._timings.short_watch:
            raise KubeUnavailableError(f"watch of {self._resource.plural}: ended as soon as it had begun")

    @contextlib.contextmanager
    def _reset_backoff_if_long(self) -> Iterator[None]:
        """Counts a long watch as a success, however it ended. A list is none: only failures may follow it."""
        began = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            if asyncio.get_running_loop().time() - began >= self._timings.long_watch:
                self._succeed()

    async def _next(self, events: AsyncIterator[WatchEvent[T]]) -> WatchEvent[T] | None:
        """Returns the next event, None at the end."""
        # only the wait for an event is limited, not the time that the consumer takes between two events
        try:
            async with asyncio.timeout(self._timings.silence):
                return await anext(events, None)
        except TimeoutError as error:
            raise KubeError(f"watch of {self._resource.plural}: no event for {self._timings.silence:g} s") from error

    def _advance(self, version: str) -> None:
        if self._since is not None:  # else `relist` was called in the meantime
            self._since = version
        self._seen = version
        self._succeed()

    def _succeed(self) -> None:
        """Notes that a watch works."""
        self._backoff.reset()
        self._has_expired = False

    async def _back_off(self, error: KubeError, *, at_least: float = 0.0) -> None:
        pause = max(at_least, self._backoff.next_pause(retry_after=error.retry_after))
        self.problem = str(error)
        log.warning("%s (retry in %.1f s)", error, pause)
        await asyncio.sleep(pause)
