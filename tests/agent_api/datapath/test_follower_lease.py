"""The lease of the follower: one at a time, and a successor as soon as the holder is gone."""

import asyncio

import pytest

from agent_api.datapath.follower_lease import LEASE_SECONDS, FollowerLease
from agent_api.errors import ConflictError
from agent_api.waiters import Waiters
from tests.support.fake_clock import FakeClock
from tests.support.served_agent import until


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def waiters() -> Waiters:
    return Waiters()


@pytest.fixture
def lease(waiters: Waiters, clock: FakeClock) -> FollowerLease:
    return FollowerLease(waiters, clock=clock)


async def hold(lease: FollowerLease, follower: str, until_set: asyncio.Event, *, wait: float = 30) -> None:
    """A request of a follower that waits for an event."""
    async with lease.held(follower, wait=wait):
        await until_set.wait()


async def test_nobody_holds_it_at_first(lease: FollowerLease) -> None:
    assert lease.holder is None


async def test_another_follower_is_rejected_with_the_name_of_the_holder(lease: FollowerLease) -> None:
    lease.claim("first")
    lease.claim("first")
    with pytest.raises(ConflictError, match=r"^first programs the datapath of this node$"):
        lease.claim("second")
    with pytest.raises(ConflictError, match="first"):
        await hold(lease, "second", asyncio.Event(), wait=0.01)
    assert lease.holder == "first"


async def test_it_lasts_for_a_time_after_the_last_request(lease: FollowerLease, clock: FakeClock) -> None:
    lease.claim("first")
    clock.advance(LEASE_SECONDS - 1)
    with pytest.raises(ConflictError):
        lease.claim("second")
    clock.advance(1)
    assert lease.holder is None
    lease.claim("second")
    with pytest.raises(ConflictError, match="second"):
        lease.claim("first")


async def test_it_lasts_as_long_as_a_request_waits(lease: FollowerLease, clock: FakeClock) -> None:
    end = asyncio.Event()
    request = asyncio.create_task(hold(lease, "first", end))
    await until(lambda: lease.holder == "first")
    clock.advance(2 * LEASE_SECONDS)
    with pytest.raises(ConflictError):
        lease.claim("second")
    end.set()
    await request
    assert lease.holder == "first"


async def test_a_holder_that_hangs_up_is_succeeded_at_once(lease: FollowerLease, waiters: Waiters) -> None:
    gone = asyncio.create_task(hold(lease, "first", asyncio.Event()))
    await until(lambda: lease.holder == "first")
    end = asyncio.Event()
    successor = asyncio.create_task(hold(lease, "second", end))
    await until(lambda: len(waiters) == 1)
    gone.cancel()
    await until(lambda: lease.holder == "second")
    end.set()
    await successor


async def test_of_two_requests_of_the_holder_one_may_be_hung_up(lease: FollowerLease) -> None:
    """A request that timed out is closed when the next one is there already."""
    end = asyncio.Event()
    requests = [asyncio.create_task(hold(lease, "first", end)) for _ in range(2)]
    await asyncio.sleep(0)
    requests[0].cancel()
    await asyncio.wait(requests[:1])
    assert lease.holder == "first"
    end.set()
    await requests[1]


async def test_a_lease_that_ends_by_time_is_noticed_by_who_waits() -> None:
    lease = FollowerLease(Waiters(), lease=0.05)
    lease.claim("first")
    end = asyncio.Event()
    end.set()
    await hold(lease, "second", end)
    assert lease.holder == "second"
