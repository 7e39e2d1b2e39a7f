"""Candidates for one lease on a fake server, in an event loop with fast time."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.errors import KubeLeadershipLostError
from contrail_config.kube.leader_election import LeaderElection, Leadership
from tests.support.fake_apiserver.kinds import LEASES
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.fake_apiserver.storage import Object
from tests.support.fast_event_loop import run_fast

NAME = "manager"
DEADLINE = 60.0


def may_write(leadership: Leadership) -> bool:
    try:
        leadership.check()
    except KubeLeadershipLostError:
        return False
    return True


class Candidate:
    """A candidate in a task of its own; `lost` once it led and lost the lease."""

    def __init__(self, client: KubeClient, identity: str) -> None:
        self.election = LeaderElection(client, namespace="default", name=NAME, identity=identity)
        self.lost = False
        self._task = asyncio.create_task(self._lead())

    @property
    def may_write(self) -> bool:
        return may_write(self.election.leadership)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _lead(self) -> None:
        try:
            async with self.election.lead():
                await asyncio.Event().wait()
        except KubeLeadershipLostError:
            self.lost = True


class Setup:
    """A fake server with its candidates and its lease."""

    def __init__(self, server: FakeApiServer, stack: contextlib.AsyncExitStack) -> None:
        self.server = server
        self._stack = stack

    async def candidate(self, identity: str) -> Candidate:
        client = await self._stack.enter_async_context(connect(ClientConfig(self.server.url)))
        candidate = Candidate(client, identity)
        self._stack.push_async_callback(candidate.stop)
        return candidate

    async def leader(self, identity: str) -> Candidate:
        """Returns a candidate that leads."""
        candidate = await self.candidate(identity)
        await within(DEADLINE, lambda: candidate.may_write)
        return candidate

    @property
    def lease(self) -> Object:
        return self.server.storage.objects(LEASES)["default", NAME]

    @property
    def holder(self) -> str | None:
        holder: str | None = self.lease["spec"].get("holderIdentity")
        return holder

    def write(self, **spec: Any) -> None:
        """Changes the lease as another process."""
        lease = self.server.storage.objects(LEASES).get(("default", NAME), {"spec": {}})
        self.server.put(LEASES, NAME, spec={**lease["spec"], **spec})


def with_setup(test: Callable[[Setup], Awaitable[None]]) -> Callable[[], None]:
    """Runs a test with a setup of its own, in fast time."""

    def run() -> None:
        run_fast(_run_with_setup(test))

    run.__name__ = getattr(test, "__name__", "")
    return run


async def _run_with_setup(test: Callable[[Setup], Awaitable[None]]) -> None:
    async with serve_fake_apiserver() as server, contextlib.AsyncExitStack() as stack:
        await test(Setup(server, stack))


async def within(seconds: float, condition: Callable[[], object]) -> float:
    """Waits for a condition and returns the seconds that it took."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - nobody sets an event
            await asyncio.sleep(0.02)
    return loop.time() - started
