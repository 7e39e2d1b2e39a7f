"""Who leads, and when another candidate takes over."""

import asyncio

from tests.contrail_config.kube.leader_election.candidates import Stage, on_stage, within

DURATION = 15.0
RETRY = 2.0


@on_stage
async def test_the_first_candidate_leads_at_once(stage: Stage) -> None:
    candidate = await stage.candidate("a")
    assert not candidate.may_write
    assert await within(5, lambda: candidate.may_write) < RETRY
    spec = stage.lease["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("a", 15)
    assert spec["acquireTime"] == spec["renewTime"]
    assert spec["renewTime"].endswith("Z")


@on_stage
async def test_the_second_candidate_waits_while_the_first_renews(stage: Stage) -> None:
    first = await stage.leader("a")
    second = await stage.candidate("b")
    for _ in range(15):
        await asyncio.sleep(2)
        assert first.may_write
        assert not second.may_write
    assert stage.holder == "a"


@on_stage
async def test_the_lease_is_renewed_every_two_seconds_with_one_request(stage: Stage) -> None:
    await stage.leader("a")
    before = len(stage.server.requests)
    await asyncio.sleep(20)
    asked = stage.server.requests[before:]
    assert set(asked) == {"patch leases"}
    assert 6 <= len(asked) <= 10


@on_stage
async def test_the_next_candidate_leads_soon_after_a_release(stage: Stage) -> None:
    first = await stage.leader("a")
    second = await stage.candidate("b")
    await asyncio.sleep(5)
    await first.stop()
    assert not first.may_write
    assert await within(DURATION, lambda: second.may_write) < 2 * RETRY
    assert (stage.holder, stage.lease["spec"]["leaseTransitions"]) == ("b", 1)


@on_stage
async def test_the_next_candidate_waits_for_the_lease_of_a_killed_leader(stage: Stage) -> None:
    stage.write(holderIdentity="killed", leaseDurationSeconds=15, leaseTransitions=7)
    second = await stage.candidate("b")
    waited = await within(60, lambda: second.may_write)
    assert DURATION <= waited < DURATION + 3 * RETRY
    assert stage.lease["spec"]["leaseTransitions"] == 8


@on_stage
async def test_each_renewal_restarts_the_wait(stage: Stage) -> None:
    second = await stage.candidate("b")
    stage.write(holderIdentity="a", leaseDurationSeconds=15)
    for _ in range(4):
        await asyncio.sleep(9)
        assert not second.may_write
        stage.write(renewTime="2026-11-21T10:00:00.000000Z")
    assert await within(60, lambda: second.may_write) > 10


@on_stage
async def test_the_timestamps_in_the_lease_are_ignored(stage: Stage) -> None:
    for time in ("1990-01-01T00:00:00.000000Z", "2090-01-01T00:00:00.000000Z"):
        stage.write(holderIdentity="killed", leaseDurationSeconds=15, renewTime=time, acquireTime=time)
        candidate = await stage.candidate(f"after {time}")
        assert DURATION <= await within(60, lambda: candidate.may_write) < DURATION + 3 * RETRY  # noqa: B023 - awaited here
        await candidate.stop()


@on_stage
async def test_a_lease_without_holder_is_acquired_at_once(stage: Stage) -> None:
    stage.write(leaseTransitions=3)
    candidate = await stage.candidate("a")
    assert await within(5, lambda: candidate.may_write) < RETRY


@on_stage
async def test_one_of_many_concurrent_candidates_leads(stage: Stage) -> None:
    candidates = [await stage.candidate(name) for name in "abcdef"]
    await within(10, lambda: any(candidate.may_write for candidate in candidates))
    await asyncio.sleep(10)
    assert sum(candidate.may_write for candidate in candidates) == 1


@on_stage
async def test_fields_that_others_wrote_to_the_lease_stay(stage: Stage) -> None:
    stage.write(strategy="theirs")
    candidate = await stage.leader("a")
    await candidate.stop()
    spec = stage.lease["spec"]
    assert (spec["strategy"], spec["leaseDurationSeconds"], stage.holder) == ("theirs", 1, None)
