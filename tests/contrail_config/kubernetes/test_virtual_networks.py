"""Virtual networks created by several managers concurrently: each has a unique vni and name."""

import asyncio
from typing import Any

import msgspec
import pytest

from contrail_config.errors import ConflictError
from contrail_config.kubernetes.kinds import PROPOSED, virtual_network_object
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.store import ChangeType, WatchStart
from tests.contrail_config.kubernetes.managers import Contention, OpenManager
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.stored_objects import VIRTUAL_NETWORK_KIND
from tests.support.virtual_networks import allocate_one, make_network, new_owner


def proposal(name: str, *, vni: int) -> dict[str, Any]:
    """The proposal of a manager that was killed during the creation of a network."""
    item = virtual_network_object(make_network(name, vni=vni))
    metadata = msgspec.structs.replace(item.metadata, annotations={PROPOSED: "true"}, uid=new_owner())
    body: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(item, metadata=metadata))
    return {**body, "metadata": {**body["metadata"], "generation": 1}}


@pytest.mark.parametrize("contended", [False, True])
async def test_networks_of_two_managers_have_different_vnis(
    open_manager: OpenManager, server: FakeApiServer, *, contended: bool
) -> None:
    managers = [await open_manager() for _ in range(2)]
    if contended:
        server.faults = Contention()
    names = [f"n{number}" for number in range(12)]
    made = [managers[number % 2].put_network(make_network(name)) for number, name in enumerate(names)]
    stored = await asyncio.gather(*made)
    assert len({network.vni for network in stored}) == len(names)
    assert await managers[0].networks() == sorted(stored, key=lambda network: network.name)


async def test_a_network_created_by_two_managers_exists_once(open_manager: OpenManager) -> None:
    managers = [await open_manager() for _ in range(2)]
    one, other = await asyncio.gather(*(manager.put_network(make_network()) for manager in managers))
    assert one == other
    assert await managers[0].networks() == [one]


async def test_a_name_requested_by_two_managers_is_taken_once(open_manager: OpenManager) -> None:
    managers = [await open_manager() for _ in range(2)]
    made = [manager.put_network(make_network("a", uuid=new_owner())) for manager in managers]
    answers = await asyncio.gather(*made, return_exceptions=True)
    assert sorted(isinstance(answer, ConflictError) for answer in answers) == [False, True]
    assert len(await managers[0].networks()) == 1


async def test_a_stale_proposal_is_invisible_and_blocks_nobody(manager: KubernetesStore, server: FakeApiServer) -> None:
    server.storage.put(VIRTUAL_NETWORK_KIND, proposal("left", vni=1))
    assert await manager.networks() == []
    async with manager.watch_networks(start=WatchStart.NOW) as changes:
        stored = await manager.put_network(make_network("other"))
        assert stored.vni == 1
        change = await anext(changes)
        assert (change.type, change.object) == (ChangeType.ADDED, stored)
    assert [name for _, name in server.storage.objects(VIRTUAL_NETWORK_KIND)] == [stored.uuid]


async def test_a_stale_proposal_is_deleted_before_the_first_write(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    server.storage.put(VIRTUAL_NETWORK_KIND, proposal("left", vni=7))
    stored = await manager.put_network(make_network("other"))
    assert [name for _, name in server.storage.objects(VIRTUAL_NETWORK_KIND)] == [stored.uuid]


async def test_a_stale_proposal_of_the_same_network_is_replaced(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    server.storage.put(VIRTUAL_NETWORK_KIND, proposal("left", vni=7))
    assert (await manager.put_network(make_network("left"))).vni == 1
    assert [network.vni for network in await manager.networks()] == [1]


async def test_a_network_of_another_manager_is_usable_at_once(open_manager: OpenManager) -> None:
    first, second = await open_manager(), await open_manager()
    assert await second.address_owners() == set()
    network = await first.put_network(make_network())
    assert await allocate_one(second, network) == "10.1.0.2"
