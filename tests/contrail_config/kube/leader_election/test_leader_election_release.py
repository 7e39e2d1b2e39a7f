"""A candidate that is cancelled before it leads keeps no lease that others would have to wait for."""

import asyncio
import contextlib

import pytest
from aiohttp import web

from tests.contrail_config.kube.leader_election.candidates import DEADLINE, Stage, on_stage, within
from tests.support.fake_apiserver.places import Place
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.storage import Object
from tests.support.fast_loop import run_fast

RETRY = 2.0


class Slow(FakeApiServer):
    """Does the first write that it is asked for at once, and answers it late."""

    def __init__(self) -> None:
        super().__init__()
        self.done = False

    async def _do(self, request: web.Request, verb: str, place: Place) -> Object:
        done = await super()._do(request, verb, place)
        if verb != "get" and not self.done:
            self.done = True
            await asyncio.Event().wait()
        return done


@pytest.mark.parametrize("there", [False, True], ids=["no lease yet", "a lease that nobody holds"])
def test_a_candidate_cancelled_while_acquiring_releases_the_lease(there: bool) -> None:
    async def play() -> None:
        server = Slow()
        await server.start()
        try:
            async with contextlib.AsyncExitStack() as stack:
                await stop_in_the_middle(Stage(server, stack), server)
        finally:
            await server.stop()

    async def stop_in_the_middle(stage: Stage, server: Slow) -> None:
        if there:
            stage.write(leaseTransitions=3)
        first = await stage.candidate("a")
        await within(DEADLINE, lambda: server.done)
        assert stage.lease["spec"]["holderIdentity"] == "a"
        await first.stop()
        assert stage.holder is None
        second = await stage.candidate("b")
        assert await within(DEADLINE, lambda: second.may_write) < RETRY

    run_fast(play())


@on_stage
async def test_a_candidate_cancelled_while_waiting_sends_no_request(stage: Stage) -> None:
    await stage.leader("a")
    waiting = await stage.candidate("b")
    await within(DEADLINE, lambda: waiting.election.holder == "a")
    gets = stage.server.requests.count("get leases")
    await waiting.stop()
    assert stage.holder == "a"
    assert stage.server.requests.count("get leases") == gets
