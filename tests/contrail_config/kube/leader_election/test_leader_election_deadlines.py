"""A leader that cannot renew its lease stops before another process may lead."""

import asyncio
import contextlib
import random

import pytest

from contrail_config.kube.client import connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.errors import KubeLeadershipLostError, KubeUnavailableError
from contrail_config.kube.leader_election import LeaderElection
from tests.contrail_config.kube.leader_election.candidates import NAME, Stage, may_write, on_stage, within
from tests.support.config_maps import ConfigMaps
from tests.support.fake_apiserver.kinds import LEASES
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.fast_loop import jump, run_fast

RENEW_DEADLINE = 10.0
RETRY = 2.0
GRACE = 5.0


@on_stage
async def test_writes_are_fenced_before_the_lease_is_acquired(stage: Stage) -> None:
    async with connect(ClientConfig(stage.server.url)) as client:
        election = LeaderElection(client, namespace="default", name=NAME, identity="a")
        with pytest.raises(KubeLeadershipLostError, match="lease manager: not held"):
            election.leadership.check()


@on_stage
async def test_a_hanging_server_ends_the_leadership_before_the_lease_expires(stage: Stage) -> None:
    leader = await stage.leader("a")
    await asyncio.sleep(5)
    stage.server.faults.hung = True
    assert await within(30, lambda: not leader.may_write) <= RENEW_DEADLINE
    assert await within(5, lambda: leader.lost) < 3


@on_stage
async def test_a_short_outage_does_not_end_the_leadership(stage: Stage) -> None:
    leader = await stage.leader("a")
    for _ in range(3):
        await stage.server.stop()
        await asyncio.sleep(3)
        assert leader.may_write
        await stage.server.start()
        await asyncio.sleep(6)
        assert leader.may_write
    assert not leader.lost


@on_stage
async def test_conflicts_on_every_write_end_the_leadership(stage: Stage) -> None:
    leader = await stage.leader("a")
    stage.server.faults.conflicts = True
    assert await within(30, lambda: leader.lost) <= RENEW_DEADLINE + RETRY


@on_stage
async def test_the_leadership_ends_as_soon_as_another_holder_is_seen(stage: Stage) -> None:
    leader = await stage.leader("a")
    stage.write(holderIdentity="b")
    assert await within(30, lambda: leader.lost) < 3 * RETRY
    assert stage.holder == "b"


@on_stage
async def test_a_lease_that_somebody_else_changed_is_kept(stage: Stage) -> None:
    leader = await stage.leader("a")
    stage.write(strategy="touched")
    await asyncio.sleep(20)
    assert leader.may_write
    assert stage.lease["spec"]["strategy"] == "touched"


@on_stage
async def test_a_deleted_lease_is_recreated(stage: Stage) -> None:
    leader = await stage.leader("a")
    stage.server.remove(LEASES, NAME)
    await within(10, lambda: ("default", NAME) in stage.server.storage.objects(LEASES))
    assert stage.holder == "a"
    assert leader.may_write


@on_stage
async def test_a_suspended_process_is_fenced_when_it_resumes(stage: Stage) -> None:
    leader = await stage.leader("a")
    jump(RENEW_DEADLINE + 1)
    assert not leader.may_write
    assert await within(5, lambda: leader.lost) < 3


@on_stage
async def test_a_lease_whose_create_response_was_lost_is_recognized(stage: Stage) -> None:
    stage.server.faults.lost_answers = 1
    candidate = await stage.candidate("a")
    assert await within(30, lambda: candidate.may_write) < 3 * RETRY


@on_stage
async def test_a_lost_response_to_a_renewal_is_harmless(stage: Stage) -> None:
    leader = await stage.leader("a")
    for _ in range(3):
        stage.server.faults.lost_answers = 1
        await asyncio.sleep(6)
        assert leader.may_write
    assert not leader.lost


@on_stage
async def test_no_write_is_sent_without_the_lease(stage: Stage) -> None:
    leader = await stage.leader("a")
    check = leader.election.leadership.check
    async with connect(ClientConfig(stage.server.url), before_write=check) as client:
        config_maps = ConfigMaps(client)
        await config_maps.create("a")
        await leader.stop()
        asked = len(stage.server.requests)
        with pytest.raises(KubeLeadershipLostError):
            await config_maps.change("a", key="1")
        assert stage.server.requests[asked:] == []
        assert (await config_maps.get("a")).data == {}


@on_stage
async def test_a_hanging_write_times_out_before_another_process_may_lead(stage: Stage) -> None:
    leader = await stage.leader("a")
    leadership = leader.election.leadership
    async with connect(ClientConfig(stage.server.url), before_write=leadership.check) as client:
        stage.server.faults.hung = True
        await within(30, lambda: leadership.until - asyncio.get_running_loop().time() < 3)
        ends = leadership.until + GRACE
        with pytest.raises(KubeUnavailableError, match="timed out"):
            await ConfigMaps(client).create("a")
        assert asyncio.get_running_loop().time() < ends + 1  # not the client's own 30 s
        assert GRACE < stage.server.time_limits[-1] < GRACE + 3  # nor the server


@on_stage
async def test_the_leadership_ends_with_its_context_whatever_happens_inside(stage: Stage) -> None:
    async with connect(ClientConfig(stage.server.url)) as client:
        for problem in (ValueError("of the body"), TimeoutError("of the body")):
            election = LeaderElection(client, namespace="default", name=NAME, identity="a")
            with pytest.raises(type(problem), match="of the body"):
                async with election.lead():
                    raise problem
            assert stage.holder is None
            with pytest.raises(KubeLeadershipLostError):
                election.leadership.check()


@on_stage
async def test_a_lease_that_cannot_be_released_expires(stage: Stage) -> None:
    leader = await stage.leader("a")
    stage.server.faults.hung = True
    await asyncio.wait_for(leader.stop(), 5)
    stage.server.faults.hung = False
    assert stage.holder == "a"
    second = await stage.candidate("b")
    assert await within(60, lambda: second.may_write) >= 15


@pytest.mark.parametrize("seed", range(2))
def test_two_candidates_never_may_write_at_the_same_time(seed: int) -> None:
    run_fast(play_at_random(random.Random(seed)))


async def play_at_random(dice: random.Random) -> None:
    """Three candidates that come back whenever they lost, and a server that fails in every way for some seconds."""
    async with serve_fake_apiserver() as server, connect(ClientConfig(server.url), deadline=8) as client:
        elections = [LeaderElection(client, namespace="default", name=NAME, identity=name) for name in "abc"]
        tasks = [asyncio.create_task(lead_again_and_again(election, dice)) for election in elections]
        led: set[int] = set()
        for number in range(200):
            if number >= 25 and len(led) > 1:
                break  # there was a change of leaders to look at, whatever the jitter of the candidates was
            fail_somehow(server, dice)
            for _ in range(dice.randint(1, 60)):
                await asyncio.sleep(0.1)
                leading = [number for number, election in enumerate(elections) if may_write(election.leadership)]
                assert len(leading) <= 1
                led.update(leading)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    assert len(led) > 1


async def lead_again_and_again(election: LeaderElection, dice: random.Random) -> None:
    while True:
        with contextlib.suppress(KubeLeadershipLostError):
            async with election.lead():
                await asyncio.sleep(dice.uniform(0, 60))
        await asyncio.sleep(dice.uniform(0, 5))


def fail_somehow(server: FakeApiServer, dice: random.Random) -> None:
    faults = server.faults
    faults.hung = dice.random() < 0.2
    faults.conflicts = dice.random() < 0.2
    faults.lost_answers = dice.choice([0, 0, 1, 2])
    faults.refusals.clear()
    if dice.random() < 0.4:
        faults.refuse(dice.choice([403, 404, 409, 429, 500, 504]), times=dice.randint(1, 20))
