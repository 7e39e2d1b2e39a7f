"""Watches that end are resumed from the last version seen, without a new list."""

import asyncio
import time

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.object_cache import Deleted
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from contrail_config.kube.selector import Selector
from tests.support.config_maps import CONFIG_MAPS, ConfigMaps
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import QUICK, eventually, record_reflector


async def test_changes_are_yielded_as_they_arrive(client: KubeClient, config_maps: ConfigMaps) -> None:
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        await config_maps.create("a")
        changed = await config_maps.change("a", key="1")
        await config_maps.delete("a")
        await followed.until(lambda: len(followed.changes) == 4)
        assert followed.names()[1:] == [("Added", "a"), ("Modified", "a"), ("Deleted", "a")]
        last = followed.changes[-1]
        assert isinstance(last, Deleted)
        assert last.object.data == changed.data


async def test_a_watch_that_ends_cleanly_is_resumed_at_once(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=ReflectorTimings(first_pause=60))) as followed:
        await followed.until_listed()
        for names in ("a", "ab", "abc"):
            await config_maps.create(names[-1])
            await followed.until_seen(*names)
            server.end_watches()
        await eventually(lambda: server.requests.count("watch configmaps") == 4)
        assert server.requests.count("list configmaps") == 1


async def test_a_cut_watch_resumes_where_it_stopped(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        await config_maps.create("a")
        await followed.until(lambda: followed.objects)
        server.cut_watches()
        await config_maps.delete("a")
        await followed.until(lambda: not followed.objects)
        assert followed.lists == 1


async def test_bookmarks_advance_the_resource_version(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    server.bookmark_interval = 0.01
    async with record_reflector(Reflector(client, CONFIG_MAPS, Selector("default"), timings=QUICK)) as followed:
        await followed.until_listed()
        await eventually(lambda: server.watches)
        await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace="kube-public")
        moment = server.storage.revision
        await eventually(lambda: any(watch.bookmarked >= moment for watch in server.watches))
        server.storage.compact()
        server.cut_watches()
        await config_maps.create("late")
        await followed.until(lambda: ("default", "late") in followed.objects)
        assert followed.lists == 1


def has_started(server: FakeApiServer, watches: int) -> bool:
    """Whether so many watches were started and the last one is still open."""
    return len(server.watch_lengths) == watches and bool(server.watches)


async def test_a_watch_requests_a_timeout_of_five_to_ten_minutes(client: KubeClient, server: FakeApiServer) -> None:
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        await followed.until_listed()
        for times in range(1, 6):
            await eventually(has_started, server, times)
            server.end_watches()
        await eventually(has_started, server, 6)
    assert all(300 <= length <= 600 for length in server.watch_lengths)
    assert len(set(server.watch_lengths)) > 1


async def test_a_silent_watch_is_replaced_by_a_new_list(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    server.faults.silent = True
    async with record_reflector(
        Reflector(client, CONFIG_MAPS, timings=ReflectorTimings(first_pause=0.01, silence=0.1))
    ) as followed:
        await followed.until_listed()
        await config_maps.create("a")
        await followed.until_listed(2)
        assert [name for _, name in followed.objects] == ["a"]


async def test_bookmarks_keep_a_watch_from_being_silent(client: KubeClient, server: FakeApiServer) -> None:
    server.bookmark_interval = 0.05
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=ReflectorTimings(silence=0.2))) as followed:
        await followed.until_listed()
        await asyncio.sleep(0.5)
        assert server.requests.count("watch configmaps") == 1


async def test_the_time_of_a_slow_consumer_is_no_silence(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    async with Reflector(client, CONFIG_MAPS, timings=ReflectorTimings(silence=0.1)).changes() as changes:
        await anext(changes)
        await config_maps.create("a")
        await anext(changes)
        await config_maps.create("b")
        await asyncio.sleep(0.3)
        await anext(changes)
    assert server.requests.count("list configmaps") == 1


async def test_a_watch_that_ends_at_once_backs_off(client: KubeClient, server: FakeApiServer) -> None:
    server.faults.cut_cleanly = True
    server.faults.cuts = [0] * 100
    reflector = Reflector(client, CONFIG_MAPS, timings=ReflectorTimings(first_pause=0.05, longest_pause=0.1))
    async with record_reflector(reflector) as followed:
        await followed.until_listed()
        started = time.monotonic()
        await eventually(lambda: server.requests.count("watch configmaps") == 4)
        assert time.monotonic() - started > 0.1
        assert reflector.problem is not None
        assert "ended as soon as it had begun" in reflector.problem


@pytest.mark.parametrize("code", [429, 503])
async def test_retry_after_delays_the_next_watch(client: KubeClient, server: FakeApiServer, code: int) -> None:
    server.faults.reject(code, verb="list", retry_after=1)
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=QUICK)) as followed:
        started = time.monotonic()
        await followed.until_listed()
        assert 1.0 <= time.monotonic() - started < 3
