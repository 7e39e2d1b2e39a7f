"""Metrics of the Kubernetes client, on a real client and a server that fails."""

import pytest
from prometheus_client import CollectorRegistry

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.errors import KubeForbiddenError, KubeNotFoundError, KubeUnavailableError
from contrail_service.client_metrics import ClientMetrics
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver.server import serve_fake_apiserver
from tests.support.fake_clock import FakeClock
from tests.support.free_port import free_port


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
    async with serve_fake_apiserver() as server, connect(ClientConfig(server.url), observer=metrics) as client:
        assert _age(registry) is None
        async with client.watch(CONFIG_MAPS, since=await _version(client), seconds=60) as events:
            clock.advance(30)
            assert _age(registry) == 30
            await client.create(CONFIG_MAPS, {"metadata": {"name": "one"}}, namespace="default")
            await anext(events)
            assert _age(registry) == 0
    assert _requests(registry)["WATCH", "200"] == 1


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
