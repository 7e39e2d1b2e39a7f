"""A candidate that is cancelled before it leads keeps no lease that others would have to wait for."""

import asyncio
import contextlib

import pytest
from aiohttp import web

from tests.contrail_config.kube.leader_election.candidates import DEADLINE, Setup, with_setup, within
from tests.support.fake_apiserver.request_targets import RequestTarget
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.storage import Object
from tests.support.fast_event_loop import run_fast

RETRY = 2.0


class Slow(FakeApiServer):
    """Processes the first write at once and never responds to it."""

    def __init__(self) -> None:
        super().__init__()
        self.done = False

    async def _do(self, request: web.Request, verb: str, place: RequestTarget) -> Object:
        done = await super()._do(request, verb, place)
        if verb != "get" and not self.done:
            self.done = True
            await asyncio.Event().wait()
        return done


@pytest.mark.parametrize("exists", [False, True], ids=["no lease yet", "a lease without holder"])
def test_a_candidate_cancelled_while_acquiring_releases_the_lease(exists: bool) -> None:
    async def play() -> None:
        server = Slow()
        await server.start()
        try:
            async with contextlib.AsyncExitStack() as stack:
                await stop_in_the_middle(Setup(server, stack), server)
        finally:
            await server.stop()

    async def stop_in_the_middle(setup: Setup, server: Slow) -> None:
        if exists:
            setup.write(leaseTransitions=3)
        first = await setup.candidate("a")
        await within(DEADLINE, lambda: server.done)
        assert setup.lease["spec"]["holderIdentity"] == "a"
        await first.stop()
        assert setup.holder is None
        second = await setup.candidate("b")
        assert await within(DEADLINE, lambda: second.may_write) < RETRY

    run_fast(play())


@with_setup
async def test_a_candidate_cancelled_while_waiting_sends_no_request(setup: Setup) -> None:
    await setup.leader("a")
    waiting = await setup.candidate("b")
    await within(DEADLINE, lambda: waiting.election.holder == "a")
    gets = setup.server.requests.count("get leases")
    await waiting.stop()
    assert setup.holder == "a"
    assert setup.server.requests.count("get leases") == gets
