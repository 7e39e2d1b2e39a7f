"""Metrics of the Kubernetes client, on a real client and a server that fails."""

import asyncio
import contextlib

import pytest
from prometheus_client import CollectorRegistry

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.errors import KubeForbiddenError, KubeNotFoundError, KubeUnavailableError
from contrail_config.kube.reflector import Reflector
from contrail_service.client_metrics import ClientMetrics
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver.server import serve_fake_apiserver
from tests.support.fake_clock import FakeClock
from tests.support.free_port import free_port
from tests.support.recorded_reflector import eventually


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def metrics(registry: CollectorRegistry, clock: FakeClock) -> ClientMetrics:
    return ClientMetrics(
        registry, requests="api_requests", request_seconds="api_request_seconds", watch_age="watch_age", clock=clock
    )


async def test_requests_are_counted_by_method_and_status(metrics: ClientMetrics, registry: CollectorRegistry) -> None:
    async with serve_fake_apiserver() as server, connect(ClientConfig(server.url), observer=metrics) as client:
        await client.list_all(CONFIG_MAPS)
        with pytest.raises(KubeNotFoundError):
            await client.get(CONFIG_MAPS, "none", namespace="default")
        server.faults.reject(403, verb="create")
        with pytest.raises(KubeForbiddenError):
            await client.create(CONFIG_MAPS, {"metadata": {"name": "one"}}, namespace="default")
    assert _requests(registry) == {("GET", "200"): 1, ("GET", "404"): 1, ("POST", "403"): 1}
    assert registry.get_sample_value("api_request_seconds_count", {"method": "GET"}) == 2


async def test_requests_without_a_response_are_counted(metrics: ClientMetrics, registry: CollectorRegistry) -> None:
    async with connect(ClientConfig(f"http://127.0.0.1:{free_port()}"), deadline=0.5, observer=metrics) as client:
        with pytest.raises(KubeUnavailableError):
            await client.create(CONFIG_MAPS, {"metadata": {"name": "one"}}, namespace="default")
    assert _requests(registry) == {("POST", "none"): 1}


async def test_the_age_of_a_watch_begins_again_with_each_event(
    metrics: ClientMetrics, registry: CollectorRegistry, clock: FakeClock
) -> None:
    async with (
        serve_fake_apiserver() as server,
        connect(ClientConfig(server.url), observer=metrics) as client,
        contextlib.AsyncExitStack() as stack,
    ):
        assert _age(registry) is None
        since = await _version(client)
        with client.watching(CONFIG_MAPS) as heard:
            watch = client.watch(CONFIG_MAPS, since=since, seconds=60, heard=heard)
            events = await stack.enter_async_context(watch)
            clock.advance(30)
            assert _age(registry) == 30
            await client.create(CONFIG_MAPS, {"metadata": {"name": "one"}}, namespace="default")
            await anext(events)
            assert _age(registry) == 0
    assert _requests(registry)["WATCH", "200"] == 1


def test_of_several_watches_the_most_silent_one_counts(
    metrics: ClientMetrics, registry: CollectorRegistry, clock: FakeClock
) -> None:
    with metrics.watching("configmaps"), metrics.watching("configmaps") as heard:
        clock.advance(3600)
        heard()
        assert _age(registry) == 3600


def test_a_watch_that_has_ended_has_no_age(
    metrics: ClientMetrics, registry: CollectorRegistry, clock: FakeClock
) -> None:
    with metrics.watching("configmaps"):
        with metrics.watching("configmaps"):
            clock.advance(10)
        clock.advance(5)
        assert _age(registry) == 15
    assert _age(registry) is None


async def test_the_age_of_a_watch_grows_while_it_cannot_be_opened(
    metrics: ClientMetrics, registry: CollectorRegistry, clock: FakeClock
) -> None:
    async with serve_fake_apiserver() as server, connect(ClientConfig(server.url), observer=metrics) as client:
        server.faults.reject(403, verb="watch")
        reflector = Reflector(client, CONFIG_MAPS, since=await _version(client))
        async with reflector.changes() as changes:
            following = asyncio.create_task(anext(changes, None))
            await eventually(lambda: reflector.problem is not None)
            clock.advance(60)
            assert _age(registry) == 60
            following.cancel()
            await asyncio.wait([following])
        assert _age(registry) is None


async def _version(client: KubeClient) -> str:
    return [page.resource_version async for page in client.pages(CONFIG_MAPS)][-1]


def _age(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value("watch_age", {"resource": "configmaps"})


def _requests(registry: CollectorRegistry) -> dict[tuple[str, str], float]:
    return {
        (sample.labels["method"], sample.labels["status"]): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "api_requests_total"
    }
