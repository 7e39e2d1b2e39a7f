"""Reservations: an address that is allocated in one network is nobody else's in another one."""

import msgspec
import pytest

from contrail_config.errors import AddressUnavailableError, ExhaustedError
from contrail_config.objects import VirtualNetwork
from contrail_config.store import AddressRequest, Store
from tests.support.virtual_networks import allocate_one, make_network, new_owner, request


def reserving(network: VirtualNetwork, pool: VirtualNetwork, owner: str, address: str | None = None) -> AddressRequest:
    return msgspec.structs.replace(request(network, owner, address=address), reserved_in=pool.uuid)


@pytest.fixture
async def pool(store: Store) -> VirtualNetwork:
    return await store.put_network(make_network("pool", "10.1.0.0/29"))


@pytest.fixture
async def isolated(store: Store) -> VirtualNetwork:
    return await store.put_network(make_network("isolated", "10.1.0.0/29"))


async def allocate(store: Store, *requests: AddressRequest) -> list[str]:
    return [address.address for address in await store.allocate(requests)]


async def test_addresses_of_both_networks_differ(store: Store, pool: VirtualNetwork, isolated: VirtualNetwork) -> None:
    first, second = new_owner(), new_owner()
    assert await allocate(store, reserving(isolated, pool, first)) == ["10.1.0.2"]
    assert await allocate_one(store, pool) == "10.1.0.3"
    assert await allocate(store, reserving(isolated, pool, second)) == ["10.1.0.4"]
    with pytest.raises(AddressUnavailableError):
        await allocate_one(store, pool, address="10.1.0.2")


async def test_several_requests_of_one_call_are_independent(
    store: Store, pool: VirtualNetwork, isolated: VirtualNetwork
) -> None:
    requests = [reserving(isolated, pool, new_owner()), request(pool), reserving(isolated, pool, new_owner())]
    assert await allocate(store, *requests) == ["10.1.0.2", "10.1.0.3", "10.1.0.4"]


async def test_an_owner_keeps_its_address_and_both_are_released_together(
    store: Store, pool: VirtualNetwork, isolated: VirtualNetwork
) -> None:
    owner = new_owner()
    asked = reserving(isolated, pool, owner)
    assert await allocate(store, asked, asked) == ["10.1.0.2", "10.1.0.2"]
    assert await allocate(store, asked) == ["10.1.0.2"]
    await store.release([owner], hold=0.0)
    assert await allocate_one(store, pool, address="10.1.0.2") == "10.1.0.2"
    assert not await store.has_addresses(isolated.uuid)


async def test_a_requested_address_is_refused_if_it_is_allocated_in_the_other_network(
    store: Store, pool: VirtualNetwork, isolated: VirtualNetwork
) -> None:
    await allocate_one(store, pool, address="10.1.0.5")
    with pytest.raises(AddressUnavailableError) as refused:
        await store.allocate([reserving(isolated, pool, new_owner(), "10.1.0.5")])
    assert refused.value.network == isolated.name
    assert await allocate(store, reserving(isolated, pool, new_owner(), "10.1.0.6")) == ["10.1.0.6"]


async def test_a_failed_call_reserves_nothing(store: Store, pool: VirtualNetwork, isolated: VirtualNetwork) -> None:
    for _ in range(4):
        await allocate_one(store, pool)
    with pytest.raises(ExhaustedError) as exhausted:
        await store.allocate([reserving(isolated, pool, new_owner()), reserving(isolated, pool, new_owner())])
    assert exhausted.value.network == isolated.name
    assert await allocate_one(store, pool) == "10.1.0.6"
    assert not await store.has_addresses(isolated.uuid)
