"""Release and holds: a released address is held, and an early request returns the time to wait."""

import pytest

from contrail_config.errors import AddressUnavailableError, ExhaustedError
from contrail_config.objects import VirtualNetwork
from contrail_config.store import DEFAULT_HOLD, UNPLUGGED_HOLD, Store, StoredAddress
from tests.support.fake_clock import FakeClock
from tests.support.stores import OpenStore
from tests.support.virtual_networks import allocate_one, make_network, new_owner, start_pod


@pytest.fixture
async def network(store: Store) -> VirtualNetwork:
    """A network with a single usable address."""
    return await store.put_network(make_network("tiny", "10.1.0.0/30"))


async def time_to_wait(store: Store, network: VirtualNetwork) -> float | None:
    with pytest.raises(ExhaustedError) as caught:
        await allocate_one(store, network)
    return caught.value.next_free_in


async def test_an_address_is_free_when_its_hold_expires(
    store: Store, network: VirtualNetwork, clock: FakeClock
) -> None:
    owner = new_owner()
    address = await allocate_one(store, network, owner)
    await store.release([owner])
    assert await time_to_wait(store, network) == DEFAULT_HOLD
    clock.advance(DEFAULT_HOLD - 1)
    assert await time_to_wait(store, network) == 1
    clock.advance(1)
    assert await allocate_one(store, network) == address


async def test_an_address_without_a_hold_is_free_at_once(store: Store, network: VirtualNetwork) -> None:
    owner = new_owner()
    address = await allocate_one(store, network, owner)
    await store.release([owner], hold=0)
    assert await allocate_one(store, network) == address


async def test_the_previous_owner_has_to_wait_too(store: Store, network: VirtualNetwork) -> None:
    owner = new_owner()
    address = await allocate_one(store, network, owner)
    await store.release([owner])
    with pytest.raises(ExhaustedError):
        await allocate_one(store, network, owner)
    with pytest.raises(AddressUnavailableError, match="still held"):
        await allocate_one(store, network, owner, address=address)


async def test_a_deleted_virtual_machine_holds_its_addresses_as_requested(
    store: Store, network: VirtualNetwork, clock: FakeClock
) -> None:
    virtual_machine = await start_pod(store, [network])
    await store.delete_virtual_machine(virtual_machine.uuid, hold=UNPLUGGED_HOLD)
    assert await time_to_wait(store, network) == UNPLUGGED_HOLD
    assert await store.address_owners() == set()


async def test_a_hold_can_be_shortened_but_not_extended(
    store: Store, network: VirtualNetwork, clock: FakeClock
) -> None:
    virtual_machine = await start_pod(store, [network])
    owners = [interface.uuid for interface in virtual_machine.interfaces]
    await store.delete_virtual_machine(virtual_machine.uuid, hold=UNPLUGGED_HOLD)
    await store.release(owners, hold=DEFAULT_HOLD)
    assert await time_to_wait(store, network) == DEFAULT_HOLD
    await store.release(owners, hold=UNPLUGGED_HOLD)
    assert await time_to_wait(store, network) == DEFAULT_HOLD
    await store.release(owners, hold=0)
    await allocate_one(store, network)


async def test_shortening_holds_keeps_allocated_addresses(store: Store) -> None:
    network = await store.put_network(make_network("two", "10.1.0.0/29"))
    owner = new_owner()
    had = await allocate_one(store, network, owner)
    await store.release([owner], hold=UNPLUGGED_HOLD)
    has = await allocate_one(store, network, owner)
    await store.shorten_holds([owner], hold=UNPLUGGED_HOLD + 1)
    with pytest.raises(AddressUnavailableError, match="still held"):
        await allocate_one(store, network, address=had)
    await store.shorten_holds([owner], hold=0)
    assert await allocate_one(store, network, address=had) == had
    assert await allocate_one(store, network, owner) == has


async def test_a_hold_survives_a_restart(
    engine: str, store: Store, network: VirtualNetwork, clock: FakeClock, open_store: OpenStore
) -> None:
    """That of Kubernetes counts it anew: managers on other machines, with other clocks, may have written it."""
    owner = new_owner()
    address = await allocate_one(store, network, owner)
    await store.release([owner], hold=60)
    await store.close()
    clock.advance(20)
    reopened = await open_store()
    assert await time_to_wait(reopened, network) == (60 if "kubernetes" in engine else 40)
    await reopened.release([owner], hold=5)
    assert await time_to_wait(reopened, network) == 5
    clock.advance(5)
    assert await allocate_one(reopened, network) == address


async def test_a_hold_survives_its_network(store: Store, network: VirtualNetwork, clock: FakeClock) -> None:
    virtual_machine = await start_pod(store, [network])
    await store.delete_virtual_machine(virtual_machine.uuid)
    await store.delete_network(network.uuid)
    network = await store.put_network(make_network("tiny", "10.1.0.0/30"))
    assert await time_to_wait(store, network) == DEFAULT_HOLD
    clock.advance(DEFAULT_HOLD)
    await allocate_one(store, network)


async def test_the_time_to_wait_is_the_earliest_hold_of_network_and_family(store: Store, clock: FakeClock) -> None:
    crowded = await store.put_network(make_network("crowded", "10.1.0.0/29", "fd00::/126"))
    other = await store.put_network(make_network("other"))
    owners = {hold: new_owner() for hold in (50, 20, 90)}
    for owner in owners.values():
        await allocate_one(store, crowded, owner)
    foreign, sixth = new_owner(), new_owner()
    await allocate_one(store, other, foreign)
    await allocate_one(store, crowded, sixth, family=6)
    for _ in range(2):
        await allocate_one(store, crowded)
    for hold, owner in owners.items():
        await store.release([owner], hold=hold)
    await store.release([foreign, sixth], hold=1)
    assert await time_to_wait(store, crowded) == 20
    clock.advance(20)
    await allocate_one(store, crowded)
    assert await time_to_wait(store, crowded) == 30


async def test_releasing_an_owner_without_addresses_is_no_error(store: Store, network: VirtualNetwork) -> None:
    await store.release([new_owner()])
    await store.release([])


async def test_one_release_covers_all_addresses_of_all_its_owners(store: Store, network: VirtualNetwork) -> None:
    dual = await store.put_network(make_network("dual", "10.2.0.0/24", "fd00::/64"))
    one, other = new_owner(), new_owner()
    for family in (4, 6):
        await allocate_one(store, dual, one, family=family)
    await allocate_one(store, network, one)
    await allocate_one(store, dual, other)
    await store.release([one, other])
    assert await store.address_owners() == set()


async def test_held_owners_are_listed_until_the_hold_expires(
    store: Store, network: VirtualNetwork, clock: FakeClock, open_store: OpenStore
) -> None:
    virtual_machine = await start_pod(store, [network])
    assert await store.held_owners() == {}
    await store.delete_virtual_machine(virtual_machine.uuid, hold=UNPLUGGED_HOLD)
    held = await store.held_owners()
    assert {owner: each.network_uuid for owner, each in held.items()} == {
        virtual_machine.interfaces[0].uuid: network.uuid
    }
    assert {each.node for each in held.values()} <= {virtual_machine.node, None}
    await store.close()
    reopened = await open_store()
    assert await reopened.held_owners() == held
    clock.advance(UNPLUGGED_HOLD - 1)
    assert await reopened.held_owners() == held
    clock.advance(1)
    assert await reopened.held_owners() == {}


async def test_an_owner_with_a_new_address_is_not_a_held_owner(store: Store) -> None:
    network = await store.put_network(make_network("small", "10.1.0.0/29"))
    owner = new_owner()
    await allocate_one(store, network, owner)
    await store.release([owner])
    await allocate_one(store, network, owner)
    assert await store.held_owners() == {}


async def all_addresses(store: Store, network_uuid: str) -> list[StoredAddress]:
    """The addresses of a network, from pages of two."""
    found: list[StoredAddress] = []
    page = await store.address_page(network_uuid, limit=2)
    while page.following is not None:
        assert len(page.addresses) == 2
        found += page.addresses
        page = await store.address_page(network_uuid, limit=2, after=page.following)
    return found + page.addresses


async def test_each_address_of_a_network_is_in_one_page(store: Store) -> None:
    dual = await store.put_network(make_network("dual", "10.2.0.0/24", "fd00::/64"))
    given = {await allocate_one(store, dual, new_owner(), family=family) for _ in range(9) for family in (4, 6)}
    listed = [each.address for each in await all_addresses(store, dual.uuid)]
    assert (len(listed), set(listed)) == (18, given)
    assert len((await store.address_page(dual.uuid, limit=18)).addresses) == 18
    assert (await store.address_page(dual.uuid, limit=18)).following is None


async def test_addresses_of_a_network_are_listed_until_their_hold_ends(
    store: Store, clock: FakeClock, open_store: OpenStore
) -> None:
    dual = await store.put_network(make_network("dual", "10.2.0.0/24", "fd00::/64"))
    other = await store.put_network(make_network("other", "10.3.0.0/24"))
    stays, goes = new_owner(), new_owner()
    given = {await allocate_one(store, dual, owner, family=family) for owner in (stays, goes) for family in (4, 6)}
    await allocate_one(store, other, stays)
    listed = await all_addresses(store, dual.uuid)
    assert sorted((each.owner, each.held_until) for each in listed) == sorted([(stays, None), (goes, None)] * 2)
    assert {each.address for each in listed} == given
    await store.release([goes])
    until = clock() + DEFAULT_HOLD
    assert {(each.owner, each.held_until) for each in await all_addresses(store, dual.uuid)} == {
        (stays, None),
        (goes, until),
    }
    assert await all_addresses(store, "00000000-0000-4000-8000-000000000000") == []
    await store.close()
    reopened = await open_store()
    assert len(await all_addresses(reopened, dual.uuid)) == 4
    clock.advance(DEFAULT_HOLD)
    assert {each.owner for each in await all_addresses(reopened, dual.uuid)} == {stays}
