"""Follows all objects of one kind for ever: lists them, watches from there, and loses nothing.

A watch that ends is taken up where it stopped. Where the server no longer knows that place (410), fell silent, or
refuses for a reason that is not a passing one, the objects are listed anew, and what changed meanwhile is told as
changes, deletions included: they carry the last state that was known. What did not change is not told again. Pauses
grow until a watch works: lists cost the server most, and succeed also where every watch fails.

Built as one generator without a task of its own: a slow reader slows the connection, and nothing is queued in memory.
A reader that leaves in the middle and comes back is told what it was not told. Kept is what the resource's struct
keeps, no bodies, or less with another view.

Not promised: every state in between, since two changes while a watch was cut may be told as one; and to notice that the
server's history began anew (etcd emptied) once it has become as long as the old one was.
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
from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import (
    KubeConfigurationError,
    KubeError,
    KubeForbiddenError,
    KubeUnauthorizedError,
    KubeUnavailableError,
)
from contrail_config.kube.object_cache import Change, Key, ObjectCache, Seen
from contrail_config.kube.paging import PAGE_LENGTH
from contrail_config.kube.resource import KubeObject, Resource
from contrail_config.kube.selector import EVERYTHING, Selector
from contrail_config.kube.watch import WatchEvent

log = logging.getLogger(__name__)

T = TypeVar("T", bound=KubeObject)


_RESUMED = (KubeUnavailableError, KubeUnauthorizedError, KubeForbiddenError, KubeConfigurationError)
"""These pass without the place being lost; a server that comes up refuses everybody for a moment."""


class Pace(msgspec.Struct, frozen=True):
    """Times in seconds, and the length of a page in objects."""

    watch_length: tuple[float, float] = (300.0, 600.0)  # drawn at random, so that not all watches end at once
    silence: float = 150.0  # a server sends bookmarks about once a minute
    short_watch: float = 1.0  # one that ends sooner, and told nothing, is a failure
    long_watch: float = 5.0  # one that lasts so long is a success, also if it told nothing
    first_pause: float = 0.8
    longest_pause: float = 30.0
    page_length: int = PAGE_LENGTH


_PACE = Pace()


async def _at_once() -> None:
    """Nothing has to be awaited."""


class Reflector(Generic[T]):
    """Follows one kind. `problem` says why the view is not up to date, None if it is.

    `before_list` is awaited before each list; a KubeError that it raises puts the list off. `since`: the version from
    which on changes are told, so that nothing is listed at first. `view` may keep less; it is the reflector's own.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource[T],
        selection: Selector = EVERYTHING,
        *,
        pace: Pace = _PACE,
        before_list: Callable[[], Awaitable[None]] = _at_once,
        since: str | None = None,
        view: Seen[T] | None = None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._selection = selection
        self._pace = pace
        self._before_list = before_list
        self._backoff = Backoff(first=pace.first_pause, longest=pace.longest_pause)
        self._view: Seen[T] = view or ObjectCache()
        self._since = since  # None: to be listed
        self.problem: str | None = f"{resource.plural} are not listed yet" if since is None else None

    @property
    def objects(self) -> Mapping[Key, T]:
        """The objects that were told of and are not gone, by namespace and name."""
        return self._view.objects

    @contextlib.asynccontextmanager
    async def changes(self) -> AsyncIterator[AsyncIterator[Change[T]]]:
        """Gives all changes, in order, until the context is left. It never ends by itself.

        Entered again after that, it goes on from there.
        """
        async with contextlib.aclosing(self._follow()) as changes:
            yield changes

    def list_again(self) -> None:
        """Has the changes begin with a list when they are entered the next time."""
        self._since = None

    async def _follow(self) -> AsyncGenerator[Change[T], None]:
        while True:
            step = self._list() if self._since is None else self._watch(self._since)
            try:
                async with contextlib.aclosing(step) as changes:
                    async for change in changes:
                        yield change
            except _RESUMED as error:
                await self._pause(error)
            except KubeError as error:
                self._since = None
                await self._pause(error)

    async def _list(self) -> AsyncGenerator[Change[T], None]:
        await self._before_list()
        self._view.begin_list()
        version = ""
        pages = self._client.pages(self._resource, self._selection, length=self._pace.page_length)
        async with contextlib.aclosing(pages):
            async for page in pages:
                version = page.resource_version
                for change in itertools.chain.from_iterable(map(self._view.take_listed, page.items)):
                    yield change
        self.problem = None
        for change in self._view.end_list():
            yield change
        self._since = version

    async def _watch(self, since: str) -> AsyncGenerator[Change[T], None]:
        begun = asyncio.get_running_loop().time()
        seconds = random.uniform(*self._pace.watch_length)  # noqa: S311 - jitter needs no secrecy
        async with self._client.watch(self._resource, self._selection, since=since, seconds=seconds) as events:
            self.problem = None
            with self._judged_by_length():
                while (event := await self._next(events)) is not None:
                    for change in self._view.take_event(event):
                        yield change
                    self._reached(event.metadata.resource_version)
        if self._since == since and asyncio.get_running_loop().time() - begun < self._pace.short_watch:
            raise KubeUnavailableError(f"watch of {self._resource.plural}: ended as soon as it had begun")

    @contextlib.contextmanager
    def _judged_by_length(self) -> Iterator[None]:
        """A watch that lasted was a success, however it ended. No list is, which may be followed by failures only."""
        begun = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            if asyncio.get_running_loop().time() - begun >= self._pace.long_watch:
                self._backoff.reset()

    async def _next(self, events: AsyncIterator[WatchEvent[T]]) -> WatchEvent[T] | None:
        """Returns the next event, None at the end."""
        try:
            async with asyncio.timeout(self._pace.silence):
                return await anext(events, None)
        except TimeoutError as error:
            raise KubeError(f"watch of {self._resource.plural}: silent for {self._pace.silence:g} s") from error

    def _reached(self, version: str) -> None:
        if self._since is not None:  # else a list was asked for meanwhile
            self._since = version
        self._backoff.reset()

    async def _pause(self, error: KubeError) -> None:
        pause = self._backoff.next_pause(asked=error.retry_after)
        self.problem = str(error)
        log.warning("%s (again in %.1f s)", error, pause)
        await asyncio.sleep(pause)
