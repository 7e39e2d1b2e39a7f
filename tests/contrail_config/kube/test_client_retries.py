"""Retries of requests: which are retried, how often and how soon, and which never are."""

import time

import pytest

from contrail_config.kube.client import ATTEMPTS, KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.errors import (
    KubeConflictError,
    KubeError,
    KubeGoneError,
    KubeNotFoundError,
    KubeThrottledError,
    KubeUnavailableError,
)
from tests.support.config_maps import CONFIG_MAPS, ConfigMaps
from tests.support.fake_apiserver import kinds
from tests.support.fake_apiserver.server import FakeApiServer


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
async def test_reads_and_idempotent_writes_survive_a_failure(
    server: FakeApiServer, config_maps: ConfigMaps, code: int
) -> None:
    await config_maps.create("a")
    for verb in ("get", "patch", "update", "list", "delete"):
        server.faults.reject(code, verb=verb)
    await config_maps.get("a")
    changed = await config_maps.change("a", key="1")
    await config_maps.client.replace(CONFIG_MAPS, "a", changed, namespace="default")
    await config_maps.client.list_all(CONFIG_MAPS)
    await config_maps.delete("a")
    assert server.faults.rejected == 5


async def test_a_create_is_retried_if_the_server_did_not_process_it(
    server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    server.faults.reject(429, verb="create")
    await config_maps.create("a")
    assert server.requests == ["create configmaps"] * 2


async def test_a_create_of_unknown_outcome_is_not_retried(server: FakeApiServer, config_maps: ConfigMaps) -> None:
    server.faults.reject(500, verb="create")
    with pytest.raises(KubeUnavailableError):
        await config_maps.create("a")
    assert server.requests == ["create configmaps"]


async def test_a_request_fails_after_the_last_attempt(server: FakeApiServer, config_maps: ConfigMaps) -> None:
    server.faults.reject(500, times=100)
    with pytest.raises(KubeUnavailableError, match="500 InternalError: rejected on purpose"):
        await config_maps.get("a")
    assert server.faults.rejected == ATTEMPTS


@pytest.mark.parametrize("code", [400, 403, 404, 409, 410, 422])
async def test_permanent_errors_are_not_retried(server: FakeApiServer, config_maps: ConfigMaps, code: int) -> None:
    server.faults.reject(code, times=2)
    with pytest.raises(KubeError) as raised:
        await config_maps.get("a")
    assert raised.value.status == code
    assert server.faults.rejected == 1


async def test_retry_after_delays_the_next_attempt(server: FakeApiServer, config_maps: ConfigMaps) -> None:
    await config_maps.create("a")
    server.faults.reject(429, retry_after=1)
    started = time.monotonic()
    await config_maps.get("a")
    assert 1.0 <= time.monotonic() - started < 4


async def test_a_retry_after_the_deadline_is_not_attempted(server: FakeApiServer) -> None:
    server.faults.reject(429, retry_after=60)
    started = time.monotonic()
    async with connect(ClientConfig(server.url), deadline=5) as client:
        with pytest.raises(KubeThrottledError) as raised:
            await client.get(CONFIG_MAPS, "a", namespace="default")
    assert time.monotonic() - started < 4
    assert raised.value.retry_after == 60


async def test_a_list_whose_continuation_expired_starts_over(client: KubeClient, server: FakeApiServer) -> None:
    for number in range(501):
        server.put(kinds.CONFIG_MAPS, f"c{number}")

    def forget_after_the_first_page(_verb: str) -> None:
        if server.requests.count("list configmaps") == 2:
            server.put(kinds.CONFIG_MAPS, "late")
            server.storage.compact()

    server.faults.before_answer = forget_after_the_first_page
    assert len(await client.list_all(CONFIG_MAPS)) == 502
    assert server.requests == ["list configmaps"] * 3  # the second list has longer pages


async def test_a_list_that_always_expires_fails(client: KubeClient, server: FakeApiServer) -> None:
    server.faults.reject(410, verb="list", times=100)
    with pytest.raises(KubeGoneError):
        await client.list_all(CONFIG_MAPS)
    assert server.faults.rejected == 3


async def test_a_connection_that_breaks_during_the_response_is_retried(
    server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    created = await config_maps.create("a", key="x" * 10_000)
    server.faults.piece = 100
    server.faults.cut_responses = [500]
    assert await config_maps.get("a") == created
    assert server.requests.count("get configmaps") == 2


async def test_a_lost_response_may_look_like_another_writers_conflict(
    server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    created = await config_maps.create("a")
    server.faults.lost_responses = 1
    with pytest.raises(KubeConflictError):
        await config_maps.client.replace(
            CONFIG_MAPS, "a", {**_body(created.metadata.resource_version)}, namespace="default"
        )
    assert (await config_maps.get("a")).data == {"key": "mine"}
    server.faults.lost_responses = 1
    with pytest.raises(KubeNotFoundError):
        await config_maps.delete("a")


def _body(version: str) -> dict[str, object]:
    return {"metadata": {"name": "a", "resourceVersion": version}, "data": {"key": "mine"}}


async def test_conflicts_are_raised_at_once(server: FakeApiServer, config_maps: ConfigMaps) -> None:
    await config_maps.create("a")
    server.faults.conflicts = True
    with pytest.raises(KubeConflictError):
        await config_maps.change("a", key="1")
    assert server.requests.count("patch configmaps") == 1
