"""Retired networks: a network whose NAD was deleted is deleted together with its last interface."""

import msgspec
import pytest

from contrail_config.objects import VirtualNetwork
from contrail_config.store import Change, ChangeType, Store, WatchStart
from tests.support.virtual_networks import allocate_one, make_network, new_owner, request, start_pod


async def retire(store: Store, network: VirtualNetwork) -> VirtualNetwork:
    return await store.put_network(msgspec.structs.replace(network, retired=True))


@pytest.mark.parametrize("held_for", [0, 300])
async def test_a_retired_network_is_deleted_with_its_last_virtual_machine(store: Store, held_for: float) -> None:
    network = await store.put_network(make_network())
    virtual_machines = [await start_pod(store, [network, network], pod) for pod in ("p1", "p2")]
    network = await retire(store, network)
    await store.delete_virtual_machine(virtual_machines[0].uuid, hold=held_for)
    assert await store.networks() == [network]
    await store.delete_virtual_machine(virtual_machines[1].uuid, hold=held_for)
    assert await store.networks() == []


async def test_a_retired_network_is_deleted_with_its_last_address(store: Store) -> None:
    network = await store.put_network(make_network("left", "10.1.0.0/24", "fd00::/64"))
    one, other = new_owner(), new_owner()
    await store.allocate([request(network, one), request(network, other, family=6)])
    await retire(store, network)
    await store.release([one])
    assert len(await store.networks()) == 1
    await store.release([other])
    assert await store.networks() == []


async def test_watchers_see_the_deletion_of_virtual_machine_and_network(store: Store) -> None:
    network = await store.put_network(make_network())
    virtual_machine = await start_pod(store, [network])
    network = await retire(store, network)
    async with (
        store.watch_networks(start=WatchStart.NOW) as networks,
        store.watch_virtual_machines(start=WatchStart.NOW) as virtual_machines,
    ):
        await store.delete_virtual_machine(virtual_machine.uuid)
        assert await anext(networks) == Change(ChangeType.DELETED, network)
        assert await anext(virtual_machines) == Change(ChangeType.DELETED, virtual_machine)


async def test_other_networks_stay(store: Store) -> None:
    networks = [await store.put_network(make_network(name)) for name in ("kept", "gone", "used")]
    await start_pod(store, [networks[2]], "stays")
    virtual_machine = await start_pod(store, networks)
    for network in networks[1:]:
        await retire(store, network)
    await store.delete_virtual_machine(virtual_machine.uuid)
    assert [network.fq_name[2] for network in await store.networks()] == ["kept", "used"]


async def test_a_revived_network_stays(store: Store) -> None:
    network = await store.put_network(make_network())
    virtual_machine = await start_pod(store, [network])
    await retire(store, network)
    assert await store.put_network(network) == network
    await store.delete_virtual_machine(virtual_machine.uuid)
    assert await store.networks() == [network]


async def test_vni_and_addresses_of_a_deleted_network_are_free(store: Store) -> None:
    network = await store.put_network(make_network("a"))
    virtual_machine = await start_pod(store, [network])
    await retire(store, network)
    await store.delete_virtual_machine(virtual_machine.uuid, hold=0)
    assert (await store.put_network(make_network("b"))).vni == network.vni
    await store.put_network(make_network("a", "10.5.0.0/24"))
    assert await allocate_one(store, network) == "10.5.0.2"
