"""Lists of many pages end although requests fail: the page is requested again, not the list."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.errors import KubeGoneError, KubeUnavailableError
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver import kinds
from tests.support.fake_apiserver.faults import Faults
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.fake_apiserver.status_errors import StatusError, expired
from tests.support.fast_event_loop import run_fast
from tests.support.recorded_reflector import RecordedReflector, record_reflector

OBJECTS = 600
LENGTH = 2
PAGES = OBJECTS // LENGTH
CODES = [429, 500, 503]


class FailingLists(Faults):
    """Rejects every tenth request for a page, or another part of them, in turn with each code."""

    def __init__(self, *, one_of: int = 10, retry_after: int = 1) -> None:
        super().__init__()
        self._requests = itertools.count(1)
        self._codes = itertools.cycle(CODES)
        self._one_of = one_of
        self._retry_after = retry_after

    def check_rejections(self, verb: str) -> None:
        super().check_rejections(verb)
        if verb == "list" and next(self._requests) % self._one_of == 0:
            self.rejected += 1
            raise StatusError(next(self._codes), "", "on purpose", retry_after=self._retry_after)


class ExpiringLists(Faults):
    """The snapshots of the next lists expire before their second pages."""

    def __init__(self, *, lists: int) -> None:
        super().__init__()
        self.lists = lists
        self._requests = itertools.count()

    def check_rejections(self, verb: str) -> None:
        super().check_rejections(verb)
        if verb == "list" and next(self._requests) % 2 and self.lists:
            self.lists -= 1
            raise expired("The provided continue parameter is too old to display a consistent list result.")


async def until_listed(followed: RecordedReflector, times: int = 1) -> None:
    while followed.lists < times:  # noqa: ASYNC110 - in fast time, in which a deadline would pass early
        await asyncio.sleep(1)


Test = Callable[[FakeApiServer, KubeClient], Awaitable[None]]


def fast(test: Test) -> Callable[[], None]:
    """Runs a test on a server with many objects, in fast time."""

    async def with_server() -> None:
        async with serve_fake_apiserver() as server, connect(ClientConfig(server.url)) as client:
            for number in range(OBJECTS):
                server.put(kinds.CONFIG_MAPS, f"c{number:03}")
            await test(server, client)

    def run() -> None:
        run_fast(with_server())

    run.__name__ = getattr(test, "__name__", "")
    return run


@fast
async def test_a_reflector_repeats_the_page_that_failed(server: FakeApiServer, client: KubeClient) -> None:
    server.faults = FailingLists()
    timings = ReflectorTimings(page_length=LENGTH)
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=timings)) as followed:
        await until_listed(followed)
        assert len(followed.objects) == OBJECTS
    assert server.faults.rejected == PAGES // 9
    assert server.requests.count("list configmaps") == PAGES + server.faults.rejected


@fast
async def test_a_whole_list_repeats_the_page_that_failed(server: FakeApiServer, client: KubeClient) -> None:
    server.faults = FailingLists()
    pages = [page async for page in client.pages(CONFIG_MAPS, length=LENGTH)]
    assert sum(len(page.items) for page in pages) == OBJECTS
    assert len({page.resource_version for page in pages}) == 1
    assert server.requests.count("list configmaps") == PAGES + server.faults.rejected


@fast
async def test_a_page_is_repeated_however_long_an_overloaded_server_asks_to_wait(
    server: FakeApiServer, client: KubeClient
) -> None:
    """API priority and fairness asks for up to 32 s."""
    server.faults = FailingLists(one_of=100, retry_after=32)
    pages = [page async for page in client.pages(CONFIG_MAPS, length=LENGTH)]
    assert sum(len(page.items) for page in pages) == OBJECTS
    assert server.requests.count("list configmaps") == PAGES + server.faults.rejected


@fast
async def test_a_page_whose_connection_breaks_is_repeated(server: FakeApiServer, client: KubeClient) -> None:
    server.faults.cut_responses = [200, 300]
    pages = [page async for page in client.pages(CONFIG_MAPS, length=OBJECTS // 2)]
    assert [len(page.items) for page in pages] == [OBJECTS // 2] * 2
    assert server.requests.count("list configmaps") == 4


@fast
async def test_a_page_that_always_fails_ends_the_list(server: FakeApiServer, client: KubeClient) -> None:
    server.faults.reject(500, verb="list", times=1000)
    with pytest.raises(KubeUnavailableError):
        await client.list_all(CONFIG_MAPS)
    assert server.faults.rejected <= 10


@fast
async def test_a_list_that_expired_starts_over_with_longer_pages(server: FakeApiServer, client: KubeClient) -> None:
    server.faults = ExpiringLists(lists=2)
    timings = ReflectorTimings(page_length=LENGTH)
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=timings)) as followed:
        await until_listed(followed)
        assert len(followed.objects) == OBJECTS
        server.forget_history()
        await until_listed(followed, 2)
    starts = [query["limit"] for query in server.list_queries if "continue" not in query]
    assert starts == [str(LENGTH), str(LENGTH * 4), str(LENGTH * 16), str(LENGTH)]


@fast
async def test_a_list_that_always_expires_is_reported(server: FakeApiServer, client: KubeClient) -> None:
    for number in range(OBJECTS, 500 * 16 + 1):
        server.put(kinds.CONFIG_MAPS, f"c{number:05}")
    server.faults = ExpiringLists(lists=1000)
    with pytest.raises(KubeGoneError):
        await client.list_all(CONFIG_MAPS)
    assert [query["limit"] for query in server.list_queries] == ["500", "2000", "8000"]
