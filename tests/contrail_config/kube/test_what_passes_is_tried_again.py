"""Repetition of requests: what is repeated, how often, how soon, and what never is."""

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
async def test_reads_and_repeatable_writes_outlast_a_failure(
    server: FakeApiServer, config_maps: ConfigMaps, code: int
) -> None:
    await config_maps.create("a")
    for verb in ("get", "patch", "update", "list", "delete"):
        server.faults.refuse(code, verb=verb)
    await config_maps.get("a")
    changed = await config_maps.change("a", key="1")
    await config_maps.client.replace(CONFIG_MAPS, "a", changed, namespace="default")
    await config_maps.client.list_all(CONFIG_MAPS)
    await config_maps.delete("a")
    assert server.faults.refused == 5


async def test_a_create_is_repeated_if_the_server_did_not_begin(server: FakeApiServer, config_maps: ConfigMaps) -> None:
    server.faults.refuse(429, verb="create")
    await config_maps.create("a")
    assert server.requests == ["create configmaps"] * 2


async def test_a_create_that_may_have_been_done_is_not_repeated(server: FakeApiServer, config_maps: ConfigMaps) -> None:
    server.faults.refuse(500, verb="create")
    with pytest.raises(KubeUnavailableError):
        await config_maps.create("a")
    assert server.requests == ["create configmaps"]


async def test_it_is_given_up_after_some_tries(server: FakeApiServer, config_maps: ConfigMaps) -> None:
    server.faults.refuse(500, times=100)
    with pytest.raises(KubeUnavailableError, match="500 InternalError: refused on purpose"):
        await config_maps.get("a")
    assert server.faults.refused == ATTEMPTS


@pytest.mark.parametrize("code", [400, 403, 404, 409, 410, 422])
async def test_what_does_not_pass_is_not_repeated(server: FakeApiServer, config_maps: ConfigMaps, code: int) -> None:
    server.faults.refuse(code, times=2)
    with pytest.raises(KubeError) as refused:
        await config_maps.get("a")
    assert refused.value.status == code
    assert server.faults.refused == 1


async def test_it_is_waited_as_long_as_the_server_asks(server: FakeApiServer, config_maps: ConfigMaps) -> None:
    await config_maps.create("a")
    server.faults.refuse(429, retry_after=1)
    begun = time.monotonic()
    await config_maps.get("a")
    assert 1.0 <= time.monotonic() - begun < 4


async def test_a_wait_that_is_longer_than_the_deadline_is_not_begun(server: FakeApiServer) -> None:
    server.faults.refuse(429, retry_after=60)
    begun = time.monotonic()
    async with connect(ClientConfig(server.url), deadline=5) as client:
        with pytest.raises(KubeThrottledError) as refused:
            await client.get(CONFIG_MAPS, "a", namespace="default")
    assert time.monotonic() - begun < 4
    assert refused.value.retry_after == 60


async def test_a_list_whose_continuation_is_gone_is_begun_anew(client: KubeClient, server: FakeApiServer) -> None:
    for number in range(501):
        server.put(kinds.CONFIG_MAPS, f"c{number}")
    original = server.faults.check_refusals

    def forget_after_the_first_page(verb: str) -> None:
        original(verb)
        if server.requests.count("list configmaps") == 2:
            server.put(kinds.CONFIG_MAPS, "late")
            server.storage.compact()

    server.faults.check_refusals = forget_after_the_first_page  # type: ignore[method-assign]  # between two pages
    assert len(await client.list_all(CONFIG_MAPS)) == 502
    assert server.requests == ["list configmaps"] * 4


async def test_a_list_that_is_always_gone_is_given_up(client: KubeClient, server: FakeApiServer) -> None:
    server.faults.refuse(410, verb="list", times=100)
    with pytest.raises(KubeGoneError):
        await client.list_all(CONFIG_MAPS)
    assert server.faults.refused == ATTEMPTS


async def test_a_connection_that_breaks_in_the_answer_is_a_reason_to_repeat(
    server: FakeApiServer, config_maps: ConfigMaps
) -> None:
    made = await config_maps.create("a", key="x" * 10_000)
    server.faults.piece = 100
    server.faults.cut_answers = [500]
    assert await config_maps.get("a") == made
    assert server.requests.count("get configmaps") == 2


async def test_a_lost_answer_may_look_like_somebody_elses_write(server: FakeApiServer, config_maps: ConfigMaps) -> None:
    made = await config_maps.create("a")
    server.faults.lost_answers = 1
    with pytest.raises(KubeConflictError):
        await config_maps.client.replace(
            CONFIG_MAPS, "a", {**_body(made.metadata.resource_version)}, namespace="default"
        )
    assert (await config_maps.get("a")).data == {"key": "mine"}
    server.faults.lost_answers = 1
    with pytest.raises(KubeNotFoundError):
        await config_maps.delete("a")


def _body(version: str) -> dict[str, object]:
    return {"metadata": {"name": "a", "resourceVersion": version}, "data": {"key": "mine"}}


async def test_conflict_on_every_write_is_told_at_once(server: FakeApiServer, config_maps: ConfigMaps) -> None:
    await config_maps.create("a")
    server.faults.conflicts = True
    with pytest.raises(KubeConflictError):
        await config_maps.change("a", key="1")
    assert server.requests.count("patch configmaps") == 1
