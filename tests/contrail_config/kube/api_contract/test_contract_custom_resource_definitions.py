"""Custom kinds: served once established, with a status subresource, and deleted with their CRD."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeExistsError, KubeInvalidError, KubeNotFoundError
from contrail_config.kube.resource import Resource
from contrail_config.kube.watch import WatchType
from tests.support.custom_kinds import DEFINITIONS, Gadget, definition_of, new_gadgets

DEADLINE = 15.0


async def define(client: KubeClient, resource: Resource[Gadget]) -> str:
    """Creates the CRD, waits until the kind is served, and returns the CRD's name."""
    name = (await client.create(DEFINITIONS, definition_of(resource))).metadata.name

    async def is_established() -> bool:
        return (await client.get(DEFINITIONS, name)).is_established

    async def is_served() -> bool:  # a moment after it is established
        return await is_found(client.list_all(resource))

    await until(is_established)
    await until(is_served)
    return name


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(DEADLINE):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.01)


async def is_found(answer: Awaitable[object]) -> bool:
    try:
        await answer
    except KubeNotFoundError:
        return False
    return True


@pytest.fixture
async def gadgets(client: KubeClient) -> AsyncIterator[Resource[Gadget]]:
    resource = new_gadgets()
    name = await define(client, resource)
    yield resource
    await client.delete(DEFINITIONS, name)


async def test_a_crd_is_created_once(client: KubeClient, gadgets: Resource[Gadget]) -> None:
    with pytest.raises(KubeExistsError):
        await client.create(DEFINITIONS, definition_of(gadgets))


async def test_objects_of_a_custom_kind_are_stored(client: KubeClient, gadgets: Resource[Gadget]) -> None:
    created = await client.create(gadgets, {"metadata": {"name": "a"}, "spec": {"size": 1}})
    assert await client.list_all(gadgets) == [created]


async def test_an_update_needs_a_resource_version(client: KubeClient, gadgets: Resource[Gadget]) -> None:
    await client.create(gadgets, {"metadata": {"name": "a"}})
    with pytest.raises(KubeInvalidError, match="resourceVersion"):
        await client.replace(gadgets, "a", {"metadata": {"name": "a"}, "spec": {"size": 2}})


async def test_the_status_is_a_subresource(client: KubeClient, gadgets: Resource[Gadget]) -> None:
    created = await client.create(gadgets, {"metadata": {"name": "a"}, "spec": {"size": 1}, "status": {"ready": True}})
    assert created.status == {}
    changes = {"spec": {"size": 2}, "status": {"ready": True}}
    patched = await client.patch(gadgets, "a", changes, subresource="status")
    assert (patched.spec, patched.status) == ({"size": 1}, {"ready": True})
    patched = await client.patch(gadgets, "a", {"spec": {"size": 3}, "status": {"ready": False}})
    assert (patched.spec, patched.status) == ({"size": 3}, {"ready": True})


async def test_objects_are_deleted_with_the_crd(client: KubeClient) -> None:
    resource = new_gadgets()
    name = await define(client, resource)
    created = await client.create(resource, {"metadata": {"name": "a"}})
    async with client.watch(resource, since=created.metadata.resource_version, seconds=60) as events:
        await client.delete(DEFINITIONS, name)
        async with asyncio.timeout(DEADLINE):
            seen = [event async for event in events if event.type is not WatchType.BOOKMARK]
    assert (seen[-1].type, seen[-1].metadata.uid) == (WatchType.DELETED, created.metadata.uid)
    with pytest.raises(KubeNotFoundError):
        await client.list_all(resource)


async def test_a_recreated_crd_has_no_objects(client: KubeClient) -> None:
    resource = new_gadgets()
    name = await define(client, resource)
    await client.create(resource, {"metadata": {"name": "a"}})
    await client.delete(DEFINITIONS, name)

    async def is_gone() -> bool:
        return not await is_found(client.get(DEFINITIONS, name))

    await until(is_gone)
    await define(client, resource)
    assert await client.list_all(resource) == []
    await client.delete(DEFINITIONS, name)
