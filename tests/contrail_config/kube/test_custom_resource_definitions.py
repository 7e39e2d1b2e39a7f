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
from tests.support.following import eventually

DEFINITION = definition_of(new_gadgets())
NAME = DEFINITION["metadata"]["name"]

Missing = asyncio.Task[None]


@pytest.fixture
async def missing(client: KubeClient) -> AsyncIterator[Missing]:
    """Looks at one definition, which is there."""
    uid = await ensure_crd(client, NAME, DEFINITION)
    task = asyncio.create_task(monitor_crds(client, {NAME: uid}, interval=0.01))
    yield task
    task.cancel()
    await asyncio.wait([task])


async def seen(server: FakeApiServer) -> None:
    """Returns when the definition was looked at twice more."""
    before = server.requests.count("get customresourcedefinitions")
    await eventually(lambda: server.requests.count("get customresourcedefinitions") >= before + 2)


async def heard(missing: Missing) -> None:
    with pytest.raises(KubeNotFoundError, match=f"{NAME}: deleted, and all its objects with it"):
        await asyncio.wait_for(missing, 10)


async def test_an_existing_crd_is_no_error(server: FakeApiServer, missing: Missing) -> None:
    await seen(server)
    assert not missing.done()


async def test_a_deleted_crd_is_an_error(client: KubeClient, server: FakeApiServer, missing: Missing) -> None:
    await seen(server)
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, NAME)
    await heard(missing)


async def test_a_recreated_crd_is_an_error(client: KubeClient, server: FakeApiServer, missing: Missing) -> None:
    """Between two looks."""
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, NAME)
    create(server.storage, CRDS, "", DEFINITION)
    await heard(missing)


async def test_a_terminating_crd_is_an_error(server: FakeApiServer, missing: Missing) -> None:
    found = server.storage.objects(CRDS)["", NAME]
    leaving = {**found["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    server.storage.put(CRDS, {**found, "metadata": leaving})
    await heard(missing)


async def test_an_emptied_etcd_is_an_error(server: FakeApiServer, missing: Missing) -> None:
    server.empty_storage()
    await heard(missing)


@pytest.mark.parametrize("code", [403, 409, 429, 500])
async def test_a_failing_server_is_polled_again(server: FakeApiServer, missing: Missing, code: int) -> None:
    server.faults.refuse(code, verb="get", times=8)
    await eventually(lambda: not server.faults.refusals)
    await seen(server)
    assert not missing.done()
