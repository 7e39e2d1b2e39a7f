"""The backoff grows until a watch works, whatever is listed in between, and then starts over."""

import asyncio
from collections.abc import Sequence

import pytest

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from tests.support.config_maps import CONFIG_MAPS, ConfigMap, ConfigMaps
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.fast_event_loop import run_fast
from tests.support.recorded_reflector import eventually, record_reflector

FIRST = 0.01
TIMINGS = ReflectorTimings(first_pause=FIRST)
LONG = TIMINGS.long_watch

Log = pytest.LogCaptureFixture


def assert_paused(log: Log, failures: Sequence[int]) -> None:
    """Checks that each pause fits the number of failures before it, counted from one."""
    pauses = [float(record.args[1]) for record in log.records if isinstance(record.args, tuple)]  # type: ignore[arg-type]  # logging types the arguments of a line as objects
    bounds = [FIRST * 2.0**number for number in failures]
    assert all(bound / 2 <= pause <= bound for pause, bound in zip(pauses, bounds, strict=True))


async def fail(server: FakeApiServer, reflector: Reflector[ConfigMap], *, times: int) -> None:
    """Ends the watch, rejects the next ones, and lets another one start."""
    await eventually(lambda: server.watches)
    server.faults.reject(500, verb="watch", times=times)
    server.cut_watches()
    await eventually(lambda: not server.faults.rejections)
    await eventually(lambda: reflector.problem is None)


async def test_a_watch_with_an_event_resets_the_backoff(
    client: KubeClient, server: FakeApiServer, config_maps: ConfigMaps, caplog: Log
) -> None:
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=TIMINGS)) as followed:
        await followed.until_listed()
        for names in ("a", "ab", "abc"):
            await config_maps.create(names[-1])
            await followed.until_seen(*names)
            await fail(server, followed.reflector, times=2)
        assert followed.lists == 1
    assert_paused(caplog, [0, 1, 2] * 3)


def test_a_long_watch_without_an_event_resets_the_backoff(caplog: Log) -> None:
    async def play() -> None:
        async with (
            serve_fake_apiserver() as server,
            connect(ClientConfig(server.url)) as client,
            record_reflector(Reflector(client, CONFIG_MAPS, timings=TIMINGS)) as followed,
        ):
            await followed.until_listed()
            for seconds in (LONG + 1, LONG + 1, LONG - 1):
                await fail(server, followed.reflector, times=2)
                await asyncio.sleep(seconds)
            await fail(server, followed.reflector, times=1)

    run_fast(play())
    assert_paused(caplog, [0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4])


async def test_a_list_does_not_reset_the_backoff(client: KubeClient, server: FakeApiServer, caplog: Log) -> None:
    server.faults.reject(400, verb="watch", times=5)
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=TIMINGS)) as followed:
        await followed.until_listed(6)
        await eventually(lambda: server.watches)
    assert_paused(caplog, range(5))


async def test_the_first_expired_version_after_failures_leads_to_a_list_at_once(
    client: KubeClient, server: FakeApiServer, caplog: Log
) -> None:
    """A server that has been away says with it that it is back."""
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=TIMINGS)) as followed:
        await followed.until_listed()
        await eventually(lambda: server.watches)
        server.faults.reject(500, verb="watch", times=3)
        server.faults.reject(410, verb="watch", times=3)
        server.cut_watches()
        await followed.until_listed(4)
        await eventually(lambda: followed.reflector.problem is None)
    assert_paused(caplog, [0, 1, 2, 3, 0, 1, 2])
