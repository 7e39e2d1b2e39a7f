"""Virtual networks created by several managers concurrently, each with a unique vni, and beside invalid ones."""

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest

from contrail_config.errors import InUseError, NotFoundError, StoreUnavailableError
from contrail_config.kubernetes import informer
from contrail_config.kubernetes.kinds import PROPOSED, virtual_network_object
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import VirtualNetwork
from contrail_config.store import ChangeType, WatchStart
from tests.contrail_config.kubernetes.managers import Contention, OpenManager
from tests.support.fake_apiserver.faults import Faults
from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import DEADLINE, eventually
from tests.support.stored_objects import BLOCK_KIND, VIRTUAL_NETWORK_KIND
from tests.support.virtual_networks import allocate_one, make_network, new_owner, start_pod


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
        server.faults = Contention(share=0.25)  # of more, twelve attempts may fail
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


async def test_a_network_of_the_same_name_with_another_uuid_is_ignored(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    add_network(server, make_network("left", uuid=new_owner(), vni=7))
    stored = await manager.put_network(make_network("left"))
    assert await manager.networks() == [stored]


async def test_a_network_without_a_number_blocks_no_other(manager: KubernetesStore, server: FakeApiServer) -> None:
    add_network(server, make_network("broken"))
    assert (await manager.put_network(make_network("left"))).vni == 1


def add_network(server: FakeApiServer, network: VirtualNetwork) -> None:
    """Stores a network as if the server had no rules."""
    body = msgspec.json.decode(msgspec.json.encode(virtual_network_object(network)))
    body["metadata"] |= {"uid": new_owner(), "generation": 1}
    server.storage.put(VIRTUAL_NETWORK_KIND, body)


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


async def test_networks_are_created_without_listing_the_others(manager: KubernetesStore, server: FakeApiServer) -> None:
    await manager.put_network(make_network("first"))
    before = len(server.requests)
    made = [manager.put_network(make_network(f"n{number}")) for number in range(50)]
    stored = await asyncio.gather(*made)
    assert sorted(network.vni for network in stored) == list(range(2, 52))
    requests = Counter(server.requests[before:])
    assert requests == {f"{verb} virtualnetworks": 50 for verb in ("get", "create", "update")}


class HungNetworks(Faults):
    """Changes of networks get no response until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = asyncio.Event()
        self.begun = asyncio.Event()

    async def delay(self, verb: str, kind: Kind, name: str) -> None:
        if kind == VIRTUAL_NETWORK_KIND and verb in ("create", "update", "delete"):
            self.begun.set()
            await self.let_go.wait()


async def test_addresses_are_allocated_while_other_networks_are_created_and_deleted(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    kept, deleted = [await manager.put_network(make_network(name)) for name in ("kept", "deleted")]
    server.faults = faults = HungNetworks()
    changes = [
        asyncio.create_task(manager.put_network(make_network("created"))),
        asyncio.create_task(manager.delete_network(deleted.uuid)),
    ]
    async with asyncio.timeout(DEADLINE):
        await faults.begun.wait()
        assert await allocate_one(manager, kept) == "10.1.0.2"
    assert not any(change.done() for change in changes)
    faults.let_go.set()
    await asyncio.gather(*changes)


async def test_no_address_is_allocated_in_a_network_while_it_is_deleted(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    network = await manager.put_network(make_network())
    server.faults = faults = HungNetworks()
    deletion = asyncio.create_task(manager.delete_network(network.uuid))
    async with asyncio.timeout(DEADLINE):
        await faults.begun.wait()
        with pytest.raises(StoreUnavailableError, match="is being changed or deleted"):
            await allocate_one(manager, network)
    faults.let_go.set()
    await deletion
    with pytest.raises(NotFoundError):
        await allocate_one(manager, network)


async def test_a_network_is_confirmed_only_when_the_watch_has_shown_what_was_written_before(
    open_manager: OpenManager, server: FakeApiServer
) -> None:
    """The second manager's watch is late: it would confirm the vni that the first one has confirmed meanwhile."""
    first, second = await open_manager(), await open_manager()
    await first.put_network(make_network("start"))
    assert await second.address_owners() == set()
    server.faults.silent = True
    confirmed = asyncio.create_task(first.put_network(make_network("one")))
    rival = asyncio.create_task(second.put_network(make_network("other")))
    await eventually(lambda: server.requests.count("create virtualnetworks") == 3)
    assert not confirmed.done()
    assert not rival.done()
    server.faults.silent = False
    server.cut_watches()
    stored = await asyncio.gather(confirmed, rival)
    assert sorted(network.vni for network in stored) == [2, 3]


async def test_a_network_whose_name_was_given_up_just_now_can_be_created(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    """The watch has not delivered the deletion of the network that had the name."""
    old = await manager.put_network(make_network("a", uuid=new_owner()))
    server.faults.silent = True
    server.remove(VIRTUAL_NETWORK_KIND, old.uuid, namespace="")
    creation = asyncio.create_task(manager.put_network(make_network("a", uuid=new_owner())))
    await eventually(lambda: "create virtualnetworks" in server.requests[-3:])
    server.faults.silent = False
    server.cut_watches()
    assert (await creation).fq_name == old.fq_name


async def test_networks_are_listed_if_the_watch_is_dead(
    manager: KubernetesStore, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(informer, "OBSERVE_DEADLINE", 0.1)
    await manager.put_network(make_network("first"))
    server.faults.silent = True
    stored = await asyncio.gather(*(manager.put_network(make_network(f"n{number}")) for number in range(3)))
    assert sorted(network.vni for network in stored) == [2, 3, 4]


async def test_a_network_with_addresses_is_not_deleted_although_its_block_has_lost_its_label(
    open_manager: OpenManager, server: FakeApiServer
) -> None:
    manager = await open_manager()
    network = await manager.put_network(make_network())
    await start_pod(manager, [network])
    (block,) = server.storage.objects(BLOCK_KIND).values()
    server.storage.put(BLOCK_KIND, {**block, "metadata": {**block["metadata"], "labels": {}}})
    server.storage.notify()
    await eventually(lambda: [each.kind for each in manager.invalid_objects()] == ["AddressBlock"])
    for each in (manager, await open_manager()):
        with pytest.raises(InUseError):
            await each.delete_network(network.uuid)
