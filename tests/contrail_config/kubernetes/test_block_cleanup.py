"""Clean-up of address blocks: expired holds and empty blocks leave the server, without extra writes for each pod."""

import asyncio

from contrail_config.kubernetes.allocation_cache import CLEANUP_DELAY
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import ForwardingMode
from tests.contrail_config.kubernetes.managers import OpenManager, writes
from tests.support.address_blocks import block_entries
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_clock import FakeClock
from tests.support.simulated_blocks import SimulatedBlocks
from tests.support.stored_objects import BLOCK_KIND
from tests.support.virtual_networks import allocate_one, make_network, new_owner

PODS = make_network("pods", "10.32.0.0/12", forwarding_mode=ForwardingMode.L3)


async def no_block_is_left(server: FakeApiServer) -> None:
    """Waits until the server has no block."""
    async with asyncio.timeout(20):
        while server.storage.objects(BLOCK_KIND):
            await server.storage.changed.wait()


async def test_a_manager_without_work_deletes_empty_blocks(
    manager: KubernetesStore, clock: FakeClock, server: FakeApiServer
) -> None:
    network = await manager.put_network(make_network("wide", "10.1.0.0/16"))
    owners = [new_owner() for _ in range(9)]
    for number, owner in enumerate(owners):
        await allocate_one(manager, network, owner, address=f"10.1.{number}.5")
    await manager.release(owners, hold=5)
    assert len(server.storage.objects(BLOCK_KIND)) == 9
    clock.advance(5)
    await manager.address_owners()
    clock.advance(CLEANUP_DELAY)
    await no_block_is_left(server)


async def test_a_new_manager_deletes_blocks_that_were_empty_before(
    open_manager: OpenManager, clock: FakeClock, server: FakeApiServer
) -> None:
    first = await open_manager()
    network = await first.put_network(make_network("wide", "10.1.0.0/16"))
    owner = new_owner()
    await allocate_one(first, network, owner)
    await first.release([owner], hold=5)
    await first.close()
    second = await open_manager()
    await second.address_owners()
    clock.advance(5)
    await second.address_owners()
    clock.advance(CLEANUP_DELAY)
    await no_block_is_left(server)


async def test_an_expired_hold_leaves_a_block_that_nobody_else_writes(
    manager: KubernetesStore, clock: FakeClock, server: FakeApiServer
) -> None:
    network = await manager.put_network(make_network())
    stays, goes = new_owner(), new_owner()
    await allocate_one(manager, network, stays)
    await allocate_one(manager, network, goes)
    await manager.release([goes], hold=5)
    clock.advance(5)
    await manager.address_owners()
    assert {one.owner for one in block_entries(server.storage.objects(BLOCK_KIND).values())} == {stays, goes}
    server.requests.clear()
    clock.advance(CLEANUP_DELAY)
    await manager.address_owners()
    assert {one.owner for one in block_entries(server.storage.objects(BLOCK_KIND).values())} == {stays}
    clock.advance(CLEANUP_DELAY)
    await manager.address_owners()
    assert writes(server) == ["update addressblocks"]


async def test_a_block_that_another_manager_uses_is_not_deleted(
    open_manager: OpenManager, clock: FakeClock, server: FakeApiServer
) -> None:
    first, second = await open_manager(), await open_manager()
    network = await first.put_network(make_network())
    owner = new_owner()
    await allocate_one(first, network, owner)
    await first.release([owner], hold=5)
    clock.advance(5 + CLEANUP_DELAY)
    await second.address_owners()
    await first.address_owners()
    clock.advance(CLEANUP_DELAY)
    used = new_owner()
    await asyncio.gather(allocate_one(second, network, used), first.address_owners())
    await first.address_owners()
    assert {one.owner for one in block_entries(server.storage.objects(BLOCK_KIND).values())} == {used}


def test_a_node_with_one_pod_at_a_time_keeps_its_block() -> None:
    cluster = SimulatedBlocks(PODS)
    for _ in range(20):
        cluster.end(cluster.start(["worker-1"]))
        cluster.advance(60)
    assert cluster.writes == 2 * 20
    assert [block.node for block in cluster.objects.values()] == ["worker-1"]


def test_a_few_blocks_are_cleaned_up_at_the_same_time() -> None:
    cluster = SimulatedBlocks(PODS)
    cluster.end(cluster.start(f"worker-{number}" for number in range(30)))
    cluster.advance(10)
    cluster.writes = 0
    cluster.advance(CLEANUP_DELAY)
    assert cluster.writes == 4
    for _ in range(7):
        cluster.advance(1)
    assert cluster.objects == {}
