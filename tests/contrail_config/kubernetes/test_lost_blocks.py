"""Lost blocks: somebody deletes an address block that is in use, and no address is allocated before a recovery."""

import asyncio

import pytest
from aiohttp import web

from contrail_config.errors import AddressesLostError, StoreError
from contrail_config.kubernetes.allocation_cache import CLEANUP_DELAY
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import VirtualNetwork
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.address_blocks import hold_seconds
from tests.support.fake_apiserver.request_targets import RequestTarget
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.storage import Object
from tests.support.fake_clock import FakeClock
from tests.support.recorded_reflector import DEADLINE, eventually
from tests.support.stored_objects import BLOCK_KIND, allocated_addresses
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import allocate_one, make_network, new_owner, start_pod


@pytest.fixture
async def network(manager: KubernetesStore) -> VirtualNetwork:
    return await manager.put_network(make_network())


def delete_blocks(server: FakeApiServer) -> None:
    for _, name in list(server.storage.objects(BLOCK_KIND)):
        server.remove(BLOCK_KIND, name, namespace="")


async def until_lost(manager: KubernetesStore) -> None:
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(AddressesLostError, match="deleted by somebody else"):
            await manager.watch_lost_addresses()


async def test_no_address_is_allocated_after_a_block_in_use_was_deleted(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork
) -> None:
    await allocate_one(manager, network)
    others = await manager.put_network(make_network("other", "10.2.0.0/24"))
    delete_blocks(server)
    with pytest.raises(StoreError):
        await allocate_one(manager, network)
    await until_lost(manager)
    for other in (network, others):
        with pytest.raises(AddressesLostError):
            await allocate_one(manager, other)
    assert allocated_addresses(server) == {}


async def test_the_first_allocation_after_the_deletion_fails_before_the_watch_reports_it(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork
) -> None:
    await allocate_one(manager, network)
    await eventually(lambda: len(server.watches) == 2)
    server.faults.silent = True
    delete_blocks(server)
    with pytest.raises(StoreError, match="last content is not known"):
        await allocate_one(manager, network)
    server.faults.silent = False
    server.storage.notify()
    await until_lost(manager)
    assert allocated_addresses(server) == {}


async def test_a_block_deleted_while_it_is_written_is_lost(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork
) -> None:
    owner = new_owner()
    first = await allocate_one(manager, network, owner)
    allocations = [asyncio.create_task(allocate_one(manager, network)) for _ in range(40)]
    await asyncio.sleep(0)
    delete_blocks(server)
    outcomes = await asyncio.gather(*allocations, return_exceptions=True)
    assert first not in outcomes
    await until_lost(manager)


async def test_a_block_deleted_before_its_creation_is_answered_is_lost(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    await manager.address_owners()
    await eventually(lambda: len(server.watches) == 2)

    work = server._do

    async def delete_at_once(request: web.Request, verb: str, target: RequestTarget) -> Object:
        done = await work(request, verb, target)
        if (verb, target.kind) == ("create", BLOCK_KIND):
            delete_blocks(server)
            await until_lost(manager)
        return done

    monkeypatch.setattr(server, "_do", delete_at_once)
    await asyncio.gather(allocate_one(manager, network), return_exceptions=True)
    with pytest.raises(AddressesLostError):
        await allocate_one(manager, network)


async def test_a_deletion_found_by_a_new_list_is_a_loss(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork
) -> None:
    await allocate_one(manager, network)
    await eventually(lambda: len(server.watches) == 2)
    server.faults.silent = True
    delete_blocks(server)
    server.faults.silent = False
    server.forget_history()
    await until_lost(manager)


async def test_a_deletion_found_by_a_new_list_is_a_loss_although_the_watch_missed_the_allocation(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork
) -> None:
    await allocate_one(manager, network)
    await eventually(lambda: len(server.watches) == 2)
    server.faults.silent = True
    await allocate_one(manager, network)
    delete_blocks(server)
    server.faults.silent = False
    server.forget_history()
    await until_lost(manager)


async def test_a_deleted_block_that_somebody_creates_again_is_lost(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork
) -> None:
    await allocate_one(manager, network)
    before = next(iter(server.storage.objects(BLOCK_KIND).values()))
    owner = new_owner()
    second = await allocate_one(manager, network, owner)
    delete_blocks(server)
    server.storage.put(BLOCK_KIND, {**before, "metadata": {**before["metadata"], "uid": new_owner()}})
    with pytest.raises(StoreError):
        assert await allocate_one(manager, network) != second
    await until_lost(manager)


@pytest.mark.parametrize("hold", [0.0, 10.0])
async def test_the_end_of_the_last_hold_is_no_loss(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork, clock: FakeClock, hold: float
) -> None:
    for _ in range(3):
        owner = new_owner()
        await allocate_one(manager, network, owner)
        await manager.release([owner], hold=hold)
        clock.advance(11)
        await manager.address_owners()
        clock.advance(CLEANUP_DELAY)
        await manager.address_owners()
        assert not server.storage.objects(BLOCK_KIND)
        server.forget_history()
    await allocate_one(manager, network)


async def test_a_block_with_a_hold_is_lost(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork
) -> None:
    owner = new_owner()
    await allocate_one(manager, network, owner)
    await manager.release([owner], hold=300)
    delete_blocks(server)
    await until_lost(manager)


async def test_a_block_that_another_manager_empties_and_deletes_is_not_lost(
    open_manager: OpenManager, server: FakeApiServer
) -> None:
    one, other = await open_manager(), await open_manager()
    network = await one.put_network(make_network())
    for _ in range(20):
        owner = new_owner()
        await allocate_one(one, network, owner)
        await allocate_one(other, network, owner)
        await asyncio.gather(one.release([owner], hold=0), allocate_one(other, network))
        await other.release(list(await other.address_owners()), hold=0)
        await one.release(list(await one.address_owners()), hold=0)
    assert allocated_addresses(server) == {}


async def test_an_object_that_is_no_block_can_be_deleted(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork
) -> None:
    await allocate_one(manager, network)
    block = next(iter(server.storage.objects(BLOCK_KIND).values()))
    metadata = {**block["metadata"], "name": f"{network.uuid}-10-1-0-7", "uid": new_owner()}
    stray = server.storage.put(BLOCK_KIND, {**block, "metadata": metadata})
    await eventually(lambda: len(manager.invalid_objects()) == 1)
    server.storage.remove(BLOCK_KIND, stray)
    await eventually(lambda: manager.invalid_objects() == [])
    await allocate_one(manager, network)


async def test_virtual_machines_are_neither_written_nor_deleted_after_a_loss(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork
) -> None:
    vm = await start_pod(manager, [network])
    delete_blocks(server)
    await until_lost(manager)
    with pytest.raises(AddressesLostError):
        await manager.put_virtual_machine(make_virtual_machine("other"))
    with pytest.raises(AddressesLostError):
        await manager.delete_virtual_machine(vm.uuid)
    assert await manager.virtual_machine(vm.uuid) == vm


async def test_the_closed_store_has_written_the_lost_blocks_again(
    open_manager: OpenManager, server: FakeApiServer
) -> None:
    manager = await open_manager()
    network = await manager.put_network(make_network("left", "10.1.0.0/24", "fd00::/64"))
    owners = [new_owner() for _ in range(100)]
    await asyncio.gather(*(allocate_one(manager, network, owner) for owner in owners))
    await manager.release(owners[:20], hold=300)
    before = allocated_addresses(server)
    delete_blocks(server)
    await until_lost(manager)
    await manager.close()
    assert allocated_addresses(server) == before
    blocks = server.storage.objects(BLOCK_KIND).values()
    assert all(hold_seconds(blocks, owner) == pytest.approx(300, abs=30) for owner in owners[:20])


def edit_block(server: FakeApiServer, line_of: str, replacement: str = "") -> None:
    """Writes the block with another line instead of the one of an address, as a stranger."""
    (block,) = server.storage.objects(BLOCK_KIND).values()
    lines = block["spec"]["addresses"].splitlines(keepends=True)
    kept = "".join(replacement if line.startswith(f"{line_of} ") else line for line in lines)
    server.storage.put(BLOCK_KIND, {**block, "spec": {**block["spec"], "addresses": kept}})
    server.storage.notify()


@pytest.mark.parametrize("owned", [False, True])
async def test_no_address_is_allocated_after_that_of_a_pod_was_removed_from_its_block(
    open_manager: OpenManager, server: FakeApiServer, *, owned: bool
) -> None:
    manager = await open_manager()
    network = await manager.put_network(make_network("left", "10.1.0.0/29"))
    pod = await start_pod(manager, [network])
    address = pod.interfaces[0].addresses[0].address
    edit_block(server, address, f"{address} {new_owner()}\n" if owned else "")
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(AddressesLostError, match="addresses of running pods were removed"):
            await manager.watch_lost_addresses()
    with pytest.raises(AddressesLostError):
        await allocate_one(manager, network)
    await manager.close()
    successor = await open_manager()
    await successor.recover_addresses(await successor.recover_virtual_machines())
    assert allocated_addresses(server)[network.uuid, address] == pod.interfaces[0].uuid


async def test_an_edit_that_the_watch_has_not_reported_yet_is_noticed_by_the_next_allocation(
    manager: KubernetesStore, server: FakeApiServer, network: VirtualNetwork
) -> None:
    pod = await start_pod(manager, [network])
    await eventually(lambda: len(server.watches) == 2)
    server.faults.silent = True
    edit_block(server, pod.interfaces[0].addresses[0].address)
    with pytest.raises(AddressesLostError):
        await allocate_one(manager, network)


async def test_an_address_that_another_manager_releases_is_not_lost(
    open_manager: OpenManager, server: FakeApiServer, clock: FakeClock
) -> None:
    first, second = [await open_manager() for _ in range(2)]
    network = await first.put_network(make_network())
    pod = await start_pod(first, [network])
    await second.virtual_machine(pod.uuid)
    await second.delete_virtual_machine(pod.uuid, hold=5)
    await eventually(lambda: allocated_addresses(server) == {})
    await allocate_one(first, network)
    clock.advance(6)
    await allocate_one(second, network)
    await allocate_one(first, network)
