"""Requested addresses: allocated, or rejected with the reason."""

import pytest

from contrail_config.errors import AddressUnavailableError
from contrail_config.objects import VirtualNetwork
from contrail_config.store import DEFAULT_HOLD, Store
from tests.support.fake_clock import FakeClock
from tests.support.virtual_networks import allocate_one, make_network, new_owner, request


@pytest.fixture
async def network(store: Store) -> VirtualNetwork:
    return await store.put_network(make_network("left", "10.1.0.0/24", "fd00:1::/64", excluded=("10.1.0.9",)))


async def rejection(
    store: Store, network: VirtualNetwork, requested: str, *, family: int = 4
) -> AddressUnavailableError:
    with pytest.raises(AddressUnavailableError) as caught:
        await allocate_one(store, network, address=requested, family=family)
    assert (caught.value.address, caught.value.network) == (requested, network.name)
    return caught.value


async def test_a_free_address_is_allocated(store: Store, network: VirtualNetwork) -> None:
    assert await allocate_one(store, network, address="10.1.0.77") == "10.1.0.77"
    assert await allocate_one(store, network, address="fd00:1:0:0::77", family=6) == "fd00:1::77"


@pytest.mark.parametrize(
    ("requested", "family", "reason"),
    [
        ("10.2.0.5", 4, "it is in no subnet of the network"),
        ("10.1.0.0", 4, "it is the network address"),
        ("10.1.0.1", 4, "it is the gateway"),
        ("10.1.0.9", 4, "it is excluded"),
        ("10.1.0.255", 4, "it is the broadcast address"),
        ("fd00:1::", 6, "it is the subnet-router anycast address"),
        ("fd00:1::1", 6, "it is the gateway"),
        ("fd00:1::1", 4, "it is not an IPv4 address"),
        ("10.1.0.7", 6, "it is not an IPv6 address"),
        ("10.1.0.7/24", 4, "it is not an IPv4 address"),
    ],
)
async def test_an_address_that_is_never_available_is_rejected(
    store: Store, network: VirtualNetwork, requested: str, family: int, reason: str
) -> None:
    caught = await rejection(store, network, requested, family=family)
    assert (caught.reason, caught.free_in) == (reason, None)


async def test_an_allocated_address_is_rejected(store: Store, network: VirtualNetwork) -> None:
    await allocate_one(store, network, address="10.1.0.7")
    caught = await rejection(store, network, "10.1.0.7")
    assert (caught.reason, caught.free_in) == ("it is already allocated to another interface", None)


async def test_a_held_address_is_rejected_with_the_time_to_wait(
    store: Store, network: VirtualNetwork, clock: FakeClock
) -> None:
    owner = new_owner()
    await allocate_one(store, network, owner, address="10.1.0.7")
    await store.release([owner], hold=30)
    clock.advance(12)
    caught = await rejection(store, network, "10.1.0.7")
    assert (caught.reason, caught.free_in) == ("it is still held after its release", 18)
    clock.advance(18)
    assert await allocate_one(store, network, address="10.1.0.7") == "10.1.0.7"


async def test_two_requests_for_one_address_in_a_call_are_both_rejected(store: Store, network: VirtualNetwork) -> None:
    asked = [request(network, address="10.1.0.7"), request(network, address="10.1.0.7")]
    with pytest.raises(AddressUnavailableError, match="already allocated to another interface"):
        await store.allocate(asked)
    assert await store.address_owners() == set()


async def test_an_owner_that_requests_its_own_address_keeps_it(store: Store, network: VirtualNetwork) -> None:
    owner = new_owner()
    for _ in range(2):
        assert await allocate_one(store, network, owner, address="10.1.0.7") == "10.1.0.7"
    assert await allocate_one(store, network, owner) == "10.1.0.7"


async def test_an_owner_that_requests_another_address_releases_the_old_one(
    store: Store, network: VirtualNetwork, clock: FakeClock
) -> None:
    owner = new_owner()
    assert await allocate_one(store, network, owner) == "10.1.0.2"
    assert await allocate_one(store, network, owner, address="10.1.0.7") == "10.1.0.7"
    assert await allocate_one(store, network, owner) == "10.1.0.7"
    assert (await rejection(store, network, "10.1.0.2")).free_in == DEFAULT_HOLD
    clock.advance(DEFAULT_HOLD)
    assert await allocate_one(store, network, address="10.1.0.2") == "10.1.0.2"


async def test_an_owner_whose_new_request_is_rejected_keeps_its_address(store: Store, network: VirtualNetwork) -> None:
    owner = new_owner()
    await allocate_one(store, network, address="10.1.0.7")
    assert await allocate_one(store, network, owner) == "10.1.0.8"
    with pytest.raises(AddressUnavailableError):
        await allocate_one(store, network, owner, address="10.1.0.7")
    assert await allocate_one(store, network, owner) == "10.1.0.8"
    assert (await rejection(store, network, "10.1.0.8")).reason == "it is already allocated to another interface"
