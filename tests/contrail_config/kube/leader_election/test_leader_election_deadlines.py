"""A leader that cannot renew its lease stops before another process may lead."""

import asyncio
import contextlib
import random

import pytest

from contrail_config.kube.client import connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.errors import KubeLeadershipLostError, KubeUnavailableError
from contrail_config.kube.leader_election import LeaderElection
from tests.contrail_config.kube.leader_election.candidates import NAME, Setup, may_write, with_setup, within
from tests.support.config_maps import ConfigMaps
from tests.support.fake_apiserver.kinds import LEASES
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.fast_event_loop import jump, run_fast

RENEW_DEADLINE = 10.0
RETRY = 2.0
GRACE = 5.0


@with_setup
async def test_writes_are_fenced_before_the_lease_is_acquired(setup: Setup) -> None:
    async with connect(ClientConfig(setup.server.url)) as client:
        election = LeaderElection(client, namespace="default", name=NAME, identity="a")
        with pytest.raises(KubeLeadershipLostError, match="lease manager: not held"):
            election.leadership.check()


@with_setup
async def test_a_hanging_server_ends_the_leadership_before_the_lease_expires(setup: Setup) -> None:
    leader = await setup.leader("a")
    await asyncio.sleep(5)
    setup.server.faults.hung = True
    assert await within(30, lambda: not leader.may_write) <= RENEW_DEADLINE
    assert await within(5, lambda: leader.lost) < 3


@with_setup
async def test_a_short_outage_does_not_end_the_leadership(setup: Setup) -> None:
    leader = await setup.leader("a")
    for _ in range(3):
        await setup.server.stop()
        await asyncio.sleep(3)
        assert leader.may_write
        await setup.server.start()
        await asyncio.sleep(6)
        assert leader.may_write
    assert not leader.lost


@with_setup
async def test_conflicts_on_every_write_end_the_leadership(setup: Setup) -> None:
    leader = await setup.leader("a")
    setup.server.faults.conflicts = True
    assert await within(30, lambda: leader.lost) <= RENEW_DEADLINE + RETRY


@with_setup
async def test_the_leadership_ends_as_soon_as_another_holder_is_seen(setup: Setup) -> None:
    leader = await setup.leader("a")
    setup.write(holderIdentity="b")
    assert await within(30, lambda: leader.lost) < 3 * RETRY
    assert setup.holder == "b"


@with_setup
async def test_a_lease_that_somebody_else_changed_is_kept(setup: Setup) -> None:
    leader = await setup.leader("a")
    setup.write(strategy="touched")
    await asyncio.sleep(20)
    assert leader.may_write
    assert setup.lease["spec"]["strategy"] == "touched"


@with_setup
async def test_a_deleted_lease_is_recreated(setup: Setup) -> None:
    leader = await setup.leader("a")
    setup.server.remove(LEASES, NAME)
    await within(10, lambda: ("default", NAME) in setup.server.storage.objects(LEASES))
    assert setup.holder == "a"
    assert leader.may_write


@with_setup
async def test_a_suspended_process_is_fenced_when_it_resumes(setup: Setup) -> None:
    leader = await setup.leader("a")
    jump(RENEW_DEADLINE + 1)
    assert not leader.may_write
    assert await within(5, lambda: leader.lost) < 3


@with_setup
async def test_a_lease_whose_create_response_was_lost_is_recognized(setup: Setup) -> None:
    setup.server.faults.lost_responses = 1
    candidate = await setup.candidate("a")
    assert await within(30, lambda: candidate.may_write) < 3 * RETRY


@with_setup
async def test_a_lost_response_to_a_renewal_is_harmless(setup: Setup) -> None:
    leader = await setup.leader("a")
    for _ in range(3):
        setup.server.faults.lost_responses = 1
        await asyncio.sleep(6)
        assert leader.may_write
    assert not leader.lost


@with_setup
async def test_no_write_is_sent_without_the_lease(setup: Setup) -> None:
    leader = await setup.leader("a")
    check = leader.election.leadership.check
    async with connect(ClientConfig(setup.server.url), before_write=check) as client:
        config_maps = ConfigMaps(client)
        await config_maps.create("a")
        await leader.stop()
        asked = len(setup.server.requests)
        with pytest.raises(KubeLeadershipLostError):
            await config_maps.change("a", key="1")
        assert setup.server.requests[asked:] == []
        assert (await config_maps.get("a")).data == {}


@with_setup
async def test_a_hanging_write_times_out_before_another_process_may_lead(setup: Setup) -> None:
    leader = await setup.leader("a")
    leadership = leader.election.leadership
    async with connect(ClientConfig(setup.server.url), before_write=leadership.check) as client:
        setup.server.faults.hung = True
        await within(30, lambda: leadership.until - asyncio.get_running_loop().time() < 3)
        ends = leadership.until + GRACE
        with pytest.raises(KubeUnavailableError, match="timed out"):
            await ConfigMaps(client).create("a")
        assert asyncio.get_running_loop().time() < ends + 1  # not the client's own 30 s
        assert GRACE < setup.server.time_limits[-1] < GRACE + 3  # nor the server


@with_setup
async def test_the_leadership_ends_with_its_context_whatever_happens_inside(setup: Setup) -> None:
    async with connect(ClientConfig(setup.server.url)) as client:
        for problem in (ValueError("of the body"), TimeoutError("of the body")):
            election = LeaderElection(client, namespace="default", name=NAME, identity="a")
            with pytest.raises(type(problem), match="of the body"):
                async with election.lead():
                    raise problem
            assert setup.holder is None
            with pytest.raises(KubeLeadershipLostError):
                election.leadership.check()


@with_setup
async def test_a_lease_that_cannot_be_released_expires(setup: Setup) -> None:
    leader = await setup.leader("a")
    setup.server.faults.hung = True
    await asyncio.wait_for(leader.stop(), 5)
    setup.server.faults.hung = False
    assert setup.holder == "a"
    second = await setup.candidate("b")
    assert await within(60, lambda: second.may_write) >= 15


@pytest.mark.parametrize("seed", range(2))
def test_two_candidates_never_may_write_at_the_same_time(seed: int) -> None:
    run_fast(play_at_random(random.Random(seed)))


async def play_at_random(dice: random.Random) -> None:
    """Three candidates that return whenever they lost the lease, and a server with changing faults."""
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
    faults.lost_responses = dice.choice([0, 0, 1, 2])
    faults.rejections.clear()
    if dice.random() < 0.4:
        faults.reject(dice.choice([403, 404, 409, 429, 500, 504]), times=dice.randint(1, 20))
