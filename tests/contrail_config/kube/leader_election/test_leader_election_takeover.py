"""Who leads, and when another candidate takes over."""

import asyncio

from tests.contrail_config.kube.leader_election.candidates import Setup, with_setup, within

DURATION = 15.0
RETRY = 2.0


@with_setup
async def test_the_first_candidate_leads_at_once(setup: Setup) -> None:
    candidate = await setup.candidate("a")
    assert not candidate.may_write
    assert await within(5, lambda: candidate.may_write) < RETRY
    spec = setup.lease["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("a", 15)
    assert spec["acquireTime"] == spec["renewTime"]
    assert spec["renewTime"].endswith("Z")


@with_setup
async def test_the_second_candidate_waits_while_the_first_renews(setup: Setup) -> None:
    first = await setup.leader("a")
    second = await setup.candidate("b")
    for _ in range(15):
        await asyncio.sleep(2)
        assert first.may_write
        assert not second.may_write
    assert setup.holder == "a"


@with_setup
async def test_the_lease_is_renewed_every_two_seconds_with_one_request(setup: Setup) -> None:
    await setup.leader("a")
    before = len(setup.server.requests)
    await asyncio.sleep(20)
    asked = setup.server.requests[before:]
    assert set(asked) == {"patch leases"}
    assert 6 <= len(asked) <= 10


@with_setup
async def test_the_next_candidate_leads_soon_after_a_release(setup: Setup) -> None:
    first = await setup.leader("a")
    second = await setup.candidate("b")
    await asyncio.sleep(5)
    await first.stop()
    assert not first.may_write
    assert await within(DURATION, lambda: second.may_write) < 2 * RETRY
    assert (setup.holder, setup.lease["spec"]["leaseTransitions"]) == ("b", 1)


@with_setup
async def test_the_next_candidate_waits_for_the_lease_of_a_killed_leader(setup: Setup) -> None:
    setup.write(holderIdentity="killed", leaseDurationSeconds=15, leaseTransitions=7)
    second = await setup.candidate("b")
    waited = await within(60, lambda: second.may_write)
    assert DURATION <= waited < DURATION + 3 * RETRY
    assert setup.lease["spec"]["leaseTransitions"] == 8


@with_setup
async def test_each_renewal_restarts_the_wait(setup: Setup) -> None:
    second = await setup.candidate("b")
    setup.write(holderIdentity="a", leaseDurationSeconds=15)
    for _ in range(4):
        await asyncio.sleep(9)
        assert not second.may_write
        setup.write(renewTime="2026-11-21T10:00:00.000000Z")
    assert await within(60, lambda: second.may_write) > 10


@with_setup
async def test_the_timestamps_in_the_lease_are_ignored(setup: Setup) -> None:
    for time in ("1990-01-01T00:00:00.000000Z", "2090-01-01T00:00:00.000000Z"):
        setup.write(holderIdentity="killed", leaseDurationSeconds=15, renewTime=time, acquireTime=time)
        candidate = await setup.candidate(f"after {time}")
        assert DURATION <= await within(60, lambda: candidate.may_write) < DURATION + 3 * RETRY  # noqa: B023 - awaited here
        await candidate.stop()


@with_setup
async def test_a_lease_without_holder_is_acquired_at_once(setup: Setup) -> None:
    setup.write(leaseTransitions=3)
    candidate = await setup.candidate("a")
    assert await within(5, lambda: candidate.may_write) < RETRY


@with_setup
async def test_one_of_many_concurrent_candidates_leads(setup: Setup) -> None:
    candidates = [await setup.candidate(name) for name in "abcdef"]
    await within(10, lambda: any(candidate.may_write for candidate in candidates))
    await asyncio.sleep(10)
    assert sum(candidate.may_write for candidate in candidates) == 1


@with_setup
async def test_fields_that_others_wrote_to_the_lease_stay(setup: Setup) -> None:
    setup.write(strategy="theirs")
    candidate = await setup.leader("a")
    await candidate.stop()
    spec = setup.lease["spec"]
    assert (spec["strategy"], spec["leaseDurationSeconds"], setup.holder) == ("theirs", 1, None)


@with_setup
async def test_a_killed_leader_that_restarts_with_its_identity_leads_at_once(setup: Setup) -> None:
    setup.write(holderIdentity="a", leaseDurationSeconds=15, leaseTransitions=7)
    restarted = await setup.candidate("a")
    assert await within(5, lambda: restarted.may_write) < RETRY
    assert (setup.holder, setup.lease["spec"]["leaseTransitions"]) == ("a", 7)
