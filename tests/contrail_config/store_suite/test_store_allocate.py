"""Allocation: addresses are unique and have the settings of their subnet; calls are idempotent and atomic."""

import asyncio

import pytest

from contrail_config.errors import AddressUnavailableError, ExhaustedError, NotFoundError
from contrail_config.objects import InterfaceAddress
from contrail_config.store import Store
from tests.support.stores import OpenStore
from tests.support.virtual_networks import allocate_one, make_network, new_owner, request, start_pod


async def test_an_address_has_prefix_length_gateway_and_dns_of_its_family(store: Store) -> None:
    network = await store.put_network(make_network("left", "10.1.0.0/24", "fd00:1::/64", dns=("10.1.0.9", "fd00:1::9")))
    assert await store.allocate([request(network), request(network, family=6)]) == [
        InterfaceAddress("10.1.0.2", 24, gateway="10.1.0.1", dns=("10.1.0.9",)),
        InterfaceAddress("fd00:1::2", 64, gateway="fd00:1::1", dns=("fd00:1::9",)),
    ]


async def test_addresses_are_returned_in_the_order_of_the_requests(store: Store) -> None:
    left = await store.put_network(make_network("left", "10.1.0.0/24"))
    right = await store.put_network(make_network("right", "10.2.0.0/24"))
    allocated = await store.allocate([request(right), request(left), request(right), request(left)])
    assert [address.address for address in allocated] == ["10.2.0.2", "10.1.0.2", "10.2.0.3", "10.1.0.3"]


async def test_overlapping_networks_allocate_independently(store: Store) -> None:
    left = await store.put_network(make_network("left", "10.1.0.0/24"))
    right = await store.put_network(make_network("right", "10.1.0.0/24"))
    assert await allocate_one(store, left) == await allocate_one(store, right) == "10.1.0.2"


async def test_an_owner_keeps_its_address(store: Store, open_store: OpenStore) -> None:
    network = await store.put_network(make_network())
    asked = request(network)
    first = await store.allocate([asked])
    assert await store.allocate([asked, asked]) == first * 2
    await store.close()
    reopened = await open_store()
    assert await reopened.allocate([asked]) == first
    assert await allocate_one(reopened, network) == "10.1.0.3"


async def test_an_owner_has_one_address_for_each_network_and_family(store: Store) -> None:
    left = await store.put_network(make_network("left", "10.1.0.0/24", "fd00:1::/64"))
    right = await store.put_network(make_network("right", "10.2.0.0/24"))
    owner = new_owner()
    asked = [request(left, owner), request(left, owner, family=6), request(right, owner)]
    allocated = await store.allocate(asked)
    assert [address.address for address in allocated] == ["10.1.0.2", "fd00:1::2", "10.2.0.2"]
    assert await store.allocate(asked) == allocated


async def test_the_next_address_follows_the_last_allocated_one(store: Store) -> None:
    network = await store.put_network(make_network())
    owner = new_owner()
    assert await allocate_one(store, network, owner) == "10.1.0.2"
    assert await allocate_one(store, network) == "10.1.0.3"
    await store.release([owner], hold=0)
    assert await allocate_one(store, network) == "10.1.0.4"


async def test_subnets_are_used_in_order(store: Store) -> None:
    network = await store.put_network(make_network("left", "10.9.0.0/30", "10.1.0.0/30"))
    assert [await allocate_one(store, network), await allocate_one(store, network)] == ["10.9.0.2", "10.1.0.2"]


async def test_a_full_network_raises_exhausted(store: Store) -> None:
    network = await store.put_network(make_network("left", "10.1.0.0/30"))
    await allocate_one(store, network)
    with pytest.raises(ExhaustedError, match=f"network {network.name}: no free IPv4 address") as caught:
        await allocate_one(store, network)
    assert (caught.value.network, caught.value.family) == (network.name, 4)
    assert caught.value.next_free_in is None


async def test_a_network_without_a_subnet_of_the_family_has_no_address_of_it(store: Store) -> None:
    network = await store.put_network(make_network())
    with pytest.raises(ExhaustedError, match="IPv6"):
        await allocate_one(store, network, family=6)


async def test_a_missing_network_is_not_found(store: Store) -> None:
    with pytest.raises(NotFoundError, match=make_network().uuid):
        await allocate_one(store, make_network())


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (request(make_network("tiny")), ExhaustedError),
        (request(make_network("large"), address="10.1.0.1"), AddressUnavailableError),
        (request(make_network("absent")), NotFoundError),
    ],
)
async def test_an_allocation_of_several_addresses_is_atomic(store: Store, last: object, error: type[Exception]) -> None:
    large = await store.put_network(make_network("large", "10.1.0.0/28"))
    tiny = await store.put_network(make_network("tiny", "10.2.0.0/30"))
    await allocate_one(store, tiny)
    owners = await store.address_owners()
    with pytest.raises(error):
        await store.allocate([request(large), request(large, address="10.1.0.9"), last])  # type: ignore[list-item]  # it is one
    assert await store.address_owners() == owners
    assert {await allocate_one(store, large) for _ in range(13)} == {f"10.1.0.{host}" for host in range(2, 15)}


async def test_a_hundred_concurrent_callers_get_different_addresses(store: Store) -> None:
    networks = [
        await store.put_network(make_network(name, cidr)) for name, cidr in [("a", "10.1.0.0/24"), ("b", "10.2.0.0/24")]
    ]
    virtual_machines = await asyncio.gather(*(start_pod(store, [*networks, networks[0]], f"p{n}") for n in range(100)))
    for network, expected in [(networks[0], 200), (networks[1], 100)]:
        allocated = [
            address.address
            for virtual_machine in virtual_machines
            for interface in virtual_machine.interfaces
            for address in interface.addresses
            if interface.network_uuid == network.uuid
        ]
        assert len(allocated) == len(set(allocated)) == expected


async def test_a_hundred_concurrent_callers_exhaust_a_network(store: Store) -> None:
    network = await store.put_network(make_network("left", "10.1.0.0/26"))
    allocated = await asyncio.gather(*(allocate_one(store, network) for _ in range(100)), return_exceptions=True)
    addresses = [each for each in allocated if isinstance(each, str)]
    assert len(addresses) == len(set(addresses)) == 61
    assert all(isinstance(each, ExhaustedError) for each in allocated if not isinstance(each, str))


async def test_a_hundred_equal_concurrent_calls_return_one_address(store: Store) -> None:
    network = await store.put_network(make_network())
    owner = new_owner()
    assert set(await asyncio.gather(*(allocate_one(store, network, owner) for _ in range(100)))) == {"10.1.0.2"}
    assert await store.address_owners() == {owner}


async def test_address_owners_are_the_owners_of_allocated_addresses(store: Store) -> None:
    network = await store.put_network(make_network())
    stays, goes = new_owner(), new_owner()
    await store.allocate([request(network, stays), request(network, goes)])
    assert await store.address_owners() == {stays, goes}
    await store.release([goes])
    assert await store.address_owners() == {stays}
