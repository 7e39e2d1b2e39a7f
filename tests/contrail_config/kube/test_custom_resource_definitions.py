"""CRD monitoring: a deleted CRD is an error, also if it was recreated, since its objects are deleted."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.custom_resource_definitions import CUSTOM_RESOURCE_DEFINITIONS, ensure_crd, monitor_crds
from contrail_config.kube.errors import KubeNotFoundError
from tests.support.custom_kinds import definition_of, new_gadgets
from tests.support.fake_apiserver.kinds import CRDS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.writes import create
from tests.support.recorded_reflector import eventually

DEFINITION = definition_of(new_gadgets())
NAME = DEFINITION["metadata"]["name"]

Monitor = asyncio.Task[None]


@pytest.fixture
async def monitor(client: KubeClient) -> AsyncIterator[Monitor]:
    """Monitors one existing CRD."""
    uid = await ensure_crd(client, NAME, DEFINITION)
    task = asyncio.create_task(monitor_crds(client, {NAME: uid}, interval=0.01))
    yield task
    task.cancel()
    await asyncio.wait([task])


async def polled_twice(server: FakeApiServer) -> None:
    """Returns when the CRD was polled twice more."""
    before = server.requests.count("get customresourcedefinitions")
    await eventually(lambda: server.requests.count("get customresourcedefinitions") >= before + 2)


async def reported(monitor: Monitor) -> None:
    with pytest.raises(KubeNotFoundError, match=f"{NAME}: deleted, and all its objects with it"):
        await asyncio.wait_for(monitor, 10)


async def test_an_existing_crd_is_no_error(server: FakeApiServer, monitor: Monitor) -> None:
    await polled_twice(server)
    assert not monitor.done()


async def test_a_deleted_crd_is_an_error(client: KubeClient, server: FakeApiServer, monitor: Monitor) -> None:
    await polled_twice(server)
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, NAME)
    await reported(monitor)


async def test_a_recreated_crd_is_an_error(client: KubeClient, server: FakeApiServer, monitor: Monitor) -> None:
    """Between two polls."""
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, NAME)
    create(server.storage, CRDS, "", DEFINITION)
    await reported(monitor)


async def test_a_terminating_crd_is_an_error(server: FakeApiServer, monitor: Monitor) -> None:
    found = server.storage.objects(CRDS)["", NAME]
    terminating = {**found["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    server.storage.put(CRDS, {**found, "metadata": terminating})
    await reported(monitor)


async def test_an_emptied_etcd_is_an_error(server: FakeApiServer, monitor: Monitor) -> None:
    server.empty_storage()
    await reported(monitor)


@pytest.mark.parametrize("code", [403, 409, 429, 500])
async def test_a_failing_server_is_polled_again(server: FakeApiServer, monitor: Monitor, code: int) -> None:
    server.faults.reject(code, verb="get", times=8)
    await eventually(lambda: not server.faults.rejections)
    await polled_twice(server)
    assert not monitor.done()
