"""What nodes report is told on for as long as it stands there, and what nobody writes any more is removed."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import CONTRAIL_NODES, GROUP, VERSION, NodeReport
from contrail_config.kubernetes.node_reports import NodeReports
from manager.kubernetes.node_report_watch import STALE_AFTER, NodeReportWatch
from tests.support.clock import FakeClock
from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.following import DEADLINE, QUICK, News, eventually

NODE_KIND = Kind(
    GROUP, VERSION, CONTRAIL_NODES.kind, CONTRAIL_NODES.plural, namespaced=False, custom=True, blind_updates=False
)


class Told(News):
    """What the nodes were heard to have unplugged, as often as it was told."""

    def __init__(self, client: KubeClient, clock: FakeClock, *, repeat_interval: float, list_timeout: float) -> None:
        super().__init__()
        self.nodes = NodeReportWatch(
            client, timings=QUICK, clock=clock, repeat_interval=repeat_interval, list_timeout=list_timeout
        )
        self.nodes.on_unplugged(self._hear)
        self.heard: list[str] = []

    def _hear(self, interfaces: object) -> None:
        assert isinstance(interfaces, tuple)
        self.heard += interfaces
        self.has_come()

    async def until_heard(self, *interfaces: str) -> None:
        """Returns when these were told of, in this order, and nothing else was."""
        await self.until(lambda: self.heard == list(interfaces))

    async def until_known(self, count: int) -> None:
        """Returns when the reports of so many nodes are known."""
        await eventually(lambda: len(self.nodes.nodes) == count)


Listen = Callable[..., AbstractAsyncContextManager[Told]]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1000.0)


@pytest.fixture
async def listen(client: KubeClient, clock: FakeClock) -> Listen:
    await ensure_crds(client)

    @contextlib.asynccontextmanager
    async def listen_one(*, repeat_interval: float = 3600.0, list_timeout: float = DEADLINE) -> AsyncIterator[Told]:
        told = Told(client, clock, repeat_interval=repeat_interval, list_timeout=list_timeout)
        async with told.nodes.running():
            yield told

    return listen_one


async def report(client: KubeClient, node: str, *unplugged: str) -> None:
    await NodeReports(client, node).write(NodeReport("2026-11-21T12:00:00Z", node, unplugged=unplugged))


def _fail(_interfaces: object) -> None:
    raise RuntimeError("on purpose")


def kept(server: FakeApiServer) -> list[str]:
    return [name for _, name in server.storage.objects(NODE_KIND)]


class TestWhatIsTold:
    """Reports are no messages: they stand."""

    async def test_what_stood_there_before_is_told_as_what_comes_is(self, client: KubeClient, listen: Listen) -> None:
        await report(client, "node-1", "a", "b")
        async with listen() as told:
            assert told.heard == ["a", "b"]  # before whoever listens begins with anything
            await report(client, "node-2", "c")
            await told.until_heard("a", "b", "c")

    async def test_it_is_told_again_and_again_as_long_as_it_stands(self, client: KubeClient, listen: Listen) -> None:
        await report(client, "node-1", "a")
        async with listen(repeat_interval=0.01) as told:
            await told.until(lambda: told.heard.count("a") == 5)
            await report(client, "node-1", "b")
            await told.until(lambda: told.heard.count("b") == 5)
            assert told.heard[-5:] == ["b"] * 5

    async def test_a_manager_that_comes_later_hears_it_too(self, client: KubeClient, listen: Listen) -> None:
        await report(client, "node-1", "a")
        for _ in range(2):
            async with listen() as told:
                await told.until_heard("a")

    async def test_whoever_listens_begins_in_the_end_where_reports_cannot_be_listed(
        self, client: KubeClient, server: FakeApiServer, listen: Listen, caplog: pytest.LogCaptureFixture
    ) -> None:
        await report(client, "node-1", "a")
        server.faults.refuse(403, verb="list", times=1000)
        async with listen(list_timeout=0.05) as told:
            assert told.heard == []
            assert "node reports: not listed within 0.05 s: " in caplog.text
            server.faults.refusals.clear()
            await told.until_heard("a")

    async def test_nodes_that_have_nothing_to_tell_tell_nothing(self, client: KubeClient, listen: Listen) -> None:
        await report(client, "node-1")
        async with listen() as told:
            await told.until_known(1)
            assert told.heard == []

    async def test_a_server_that_was_away_is_followed_on(
        self, client: KubeClient, server: FakeApiServer, listen: Listen
    ) -> None:
        async with listen() as told:
            await report(client, "node-1", "a")
            await told.until_heard("a")
            await server.stop()
            await server.start()
            await report(client, "node-1", "b")
            await told.until_heard("a", "b")

    async def test_a_report_that_cannot_be_read_keeps_nobody_from_the_others(
        self, client: KubeClient, server: FakeApiServer, listen: Listen, caplog: pytest.LogCaptureFixture
    ) -> None:
        server.put(NODE_KIND, "broken", namespace="", status={"reportedAt": 1})
        await report(client, "node-1", "a")
        async with listen() as told:
            await told.until_heard("a")
        assert "report of node broken: undecodable" in caplog.text

    async def test_what_newer_agents_add_is_passed_over(
        self, client: KubeClient, server: FakeApiServer, listen: Listen
    ) -> None:
        status = {"reportedAt": "2030-01-01T00:00:00Z", "instance": "i", "unplugged": ["a"], "mood": "fine"}
        server.put(NODE_KIND, "newer", namespace="", status=status)
        async with listen() as told:
            await told.until_heard("a")

    async def test_a_failure_is_told_in_the_log(
        self, client: KubeClient, listen: Listen, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with listen() as told:
            told.nodes.on_unplugged(_fail)
            await report(client, "node-1", "a")
            await eventually(lambda: "node reports are no longer watched" in caplog.text)


class TestNodesThatAreGone:
    """Whoever does not write for an hour is not there; clocks of nodes are not asked."""

    async def test_the_report_of_a_silent_node_is_removed(
        self, client: KubeClient, server: FakeApiServer, listen: Listen, clock: FakeClock
    ) -> None:
        await report(client, "gone")
        await report(client, "alive")
        async with listen() as told:
            await told.until_known(2)
            clock.advance(STALE_AFTER - 1)
            await told.nodes.remove_stale()
            assert len(kept(server)) == 2
            await report(client, "alive", "a")
            await told.until(lambda: told.heard)
            clock.advance(1)
            await told.nodes.remove_stale()
            assert kept(server) == ["alive"]
            await told.until_known(1)

    async def test_it_is_done_every_few_seconds(
        self, client: KubeClient, server: FakeApiServer, listen: Listen, clock: FakeClock
    ) -> None:
        await report(client, "gone")
        async with listen(repeat_interval=0.01) as told:
            await told.until_known(1)
            clock.advance(STALE_AFTER)
            await eventually(lambda: not kept(server))

    async def test_a_node_that_is_heard_of_at_the_last_moment_stays(
        self, client: KubeClient, server: FakeApiServer, listen: Listen, clock: FakeClock
    ) -> None:
        await report(client, "slow")
        async with listen() as told:
            await told.until_known(1)
            clock.advance(STALE_AFTER)
            server.faults.silent = True
            server.cut_watches()
            await report(client, "slow", "a")
            await told.nodes.remove_stale()
        assert kept(server) == ["slow"]

    async def test_one_that_was_removed_by_somebody_else_is_no_error(
        self, client: KubeClient, server: FakeApiServer, listen: Listen, clock: FakeClock
    ) -> None:
        await report(client, "gone")
        async with listen() as told:
            await told.until_known(1)
            clock.advance(STALE_AFTER)
            server.faults.silent = True
            await client.delete(CONTRAIL_NODES, "gone")
            await told.nodes.remove_stale()

    async def test_a_server_that_refuses_is_asked_again(
        self,
        client: KubeClient,
        server: FakeApiServer,
        listen: Listen,
        clock: FakeClock,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        await report(client, "gone")
        async with listen() as told:
            await told.until_known(1)
            clock.advance(STALE_AFTER)
            server.faults.refuse(403, verb="delete")
            await told.nodes.remove_stale()
            assert "report of node gone: not removed" in caplog.text
            await told.nodes.remove_stale()
            assert kept(server) == []
