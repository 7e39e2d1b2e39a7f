"""Holds of addresses when the system time is set ahead or back, while the store is open and in between."""

from pathlib import Path

import pytest

from contrail_config.embedded.store import SqliteStore
from contrail_config.errors import ExhaustedError
from contrail_config.objects import VirtualNetwork
from contrail_config.store import DEFAULT_HOLD, UNPLUGGED_HOLD
from tests.support.system_clock import SystemClock
from tests.support.virtual_networks import allocate_one, make_network, new_owner

HOUR = 3600.0


@pytest.fixture
def system_clock(monkeypatch: pytest.MonkeyPatch) -> SystemClock:
    clock = SystemClock()
    monkeypatch.setattr("time.time", clock)
    return clock


async def remaining_hold(store: SqliteStore, network: VirtualNetwork) -> float:
    """Allocates from a network without a free address, and returns when a held one gets free."""
    with pytest.raises(ExhaustedError) as caught:
        await allocate_one(store, network)
    assert caught.value.next_free_in is not None
    return caught.value.next_free_in


async def release_the_only_address(store: SqliteStore) -> VirtualNetwork:
    """Returns its network."""
    network = await store.put_network(make_network("tiny", "10.1.0.0/30"))
    owner = new_owner()
    await allocate_one(store, network, owner)
    await store.release([owner])
    return network


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
async def test_a_hold_lasts_as_long_when_the_clock_is_set(path: Path, system_clock: SystemClock, ahead: float) -> None:
    store = await SqliteStore.open(path)
    network = await release_the_only_address(store)
    system_clock.ahead = ahead
    assert 0 < await remaining_hold(store, network) <= DEFAULT_HOLD
    await store.close()


async def test_no_hold_lasts_an_hour_after_the_clock_was_set_back_before_a_restart(
    path: Path, system_clock: SystemClock
) -> None:
    store = await SqliteStore.open(path)
    network = await release_the_only_address(store)
    await store.close()
    system_clock.ahead = -HOUR
    reopened = await SqliteStore.open(path)
    assert 0 < await remaining_hold(reopened, network) <= UNPLUGGED_HOLD
    await reopened.close()
