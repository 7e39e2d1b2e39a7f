"""Holds that another manager set, by a clock hours ahead or behind: each lasts its length from when it is seen."""

import pytest

from contrail_config.errors import ExhaustedError, StoreError
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import VirtualNetwork
from contrail_config.store import DEFAULT_HOLD, UNPLUGGED_HOLD
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_clock import FakeClock
from tests.support.virtual_networks import allocate_one, make_network, new_owner

HOUR = 3600.0


async def remaining_hold(manager: KubernetesStore, network: VirtualNetwork) -> float:
    """Allocates from a network without a free address, and returns when a held one gets free."""
    with pytest.raises(ExhaustedError) as caught:
        await allocate_one(manager, network)
    assert caught.value.next_free_in is not None
    return caught.value.next_free_in


async def release_the_only_address(
    manager: KubernetesStore, *, owner: str = "released", hold: float = DEFAULT_HOLD
) -> VirtualNetwork:
    """Returns its network."""
    network = await manager.put_network(make_network("tiny", "10.1.0.0/30"))
    await allocate_one(manager, network, owner)
    await manager.release([owner], hold=hold)
    return network


@pytest.mark.parametrize("ahead", [0.0, HOUR, -HOUR])
async def test_a_hold_lasts_its_length_in_the_next_manager(
    open_manager: OpenManager, clock: FakeClock, ahead: float
) -> None:
    first = await open_manager()
    network = await release_the_only_address(first)
    await first.close()
    other = FakeClock(clock.now + ahead)
    second = await open_manager(clock=other)
    assert await remaining_hold(second, network) == DEFAULT_HOLD
    other.advance(DEFAULT_HOLD)
    assert await allocate_one(second, network) == "10.1.0.2"


async def test_no_hold_of_another_manager_lasts_longer_than_the_longest(open_manager: OpenManager) -> None:
    network = await release_the_only_address(await open_manager(), hold=HOUR)
    assert await remaining_hold(await open_manager(), network) == UNPLUGGED_HOLD


async def test_a_shortened_hold_is_as_short_in_the_next_manager(open_manager: OpenManager, clock: FakeClock) -> None:
    first, owner = await open_manager(), new_owner()
    network = await release_the_only_address(first, owner=owner, hold=UNPLUGGED_HOLD)
    await first.shorten_holds([owner])
    second = await open_manager(clock=FakeClock(clock.now + HOUR))
    assert await remaining_hold(second, network) == DEFAULT_HOLD


async def test_a_hold_is_not_counted_again_when_managers_write_its_block_in_turn(
    open_manager: OpenManager, clock: FakeClock
) -> None:
    ahead = FakeClock(clock.now + HOUR)
    first, second = await open_manager(), await open_manager(clock=ahead)
    network = await first.put_network(make_network("small", "10.1.0.0/29"))
    owner = new_owner()
    await allocate_one(first, network, owner)
    await first.release([owner])
    for manager in (second, first, second, first):
        await allocate_one(manager, network)
        clock.advance(1)
        ahead.advance(1)
    assert [await remaining_hold(manager, network) for manager in (first, second)] == [DEFAULT_HOLD - 4] * 2


async def test_an_expired_hold_that_is_read_again_does_not_begin_again(
    open_manager: OpenManager, clock: FakeClock, server: FakeApiServer
) -> None:
    """It leaves the object with the next write, which fails here."""
    network = await release_the_only_address(await open_manager())
    other = FakeClock(clock.now + HOUR)
    manager = await open_manager(clock=other)
    assert await remaining_hold(manager, network) == DEFAULT_HOLD
    other.advance(DEFAULT_HOLD)
    server.faults.reject(403, verb="update")
    with pytest.raises(StoreError, match="address block"):
        await allocate_one(manager, network)
    assert await allocate_one(manager, network) == "10.1.0.2"
