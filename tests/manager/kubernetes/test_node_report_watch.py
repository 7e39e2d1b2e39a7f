"""Node reports are delivered repeatedly as long as they exist, and stale ones are removed."""

import contextlib
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import CONTRAIL_NODES, GROUP, VERSION, NodeReport
from contrail_config.kubernetes.node_reports import NodeReports
from contrail_config.objects import Refusal
from manager.kubernetes.node_report_watch import STALE_AFTER, NodeReportWatch
from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_clock import FakeClock
from tests.support.recorded_reflector import DEADLINE, QUICK, ChangeSignal, eventually

A, B, C = (str(uuid.UUID(int=number)) for number in (1, 2, 3))

NODE_KIND = Kind(
    GROUP, VERSION, CONTRAIL_NODES.kind, CONTRAIL_NODES.plural, namespaced=False, custom=True, blind_updates=False
)


class Listener(ChangeSignal):
    """Records all deliveries of reports."""

    def __init__(self, client: KubeClient, clock: FakeClock, *, repeat_interval: float, list_timeout: float) -> None:
        super().__init__()
        self.watch = NodeReportWatch(
            client, timings=QUICK, clock=clock, repeat_interval=repeat_interval, list_timeout=list_timeout
        )
        self.mtus: dict[str, int | None] = {}
        self.watch.on_unplugged(self._deliver)
        self.watch.on_refused(self._refuse)
        self.delivered: list[str] = []
        self.watch.on_report(lambda node, report: self.mtus.update({node: report.tunnel_mtu}))
        self.watch.on_removed(self.mtus.__delitem__)
        self.refused: dict[str, Sequence[Refusal]] = {}

    def _refuse(self, node: str, refusals: Sequence[Refusal]) -> None:
        self.refused[node] = refusals
        self.notify()

    def _deliver(self, node: str, interfaces: Sequence[str]) -> None:
        assert node in self.watch.nodes
        self.delivered += interfaces
        self.notify()

    async def until_delivered(self, *interfaces: str) -> None:
        """Returns when exactly these were delivered, in this order."""
        await self.until(lambda: self.delivered == list(interfaces))

    async def until_known(self, count: int) -> None:
        """Returns when the reports of so many nodes are known."""
        await eventually(lambda: len(self.watch.nodes) == count)


Listen = Callable[..., AbstractAsyncContextManager[Listener]]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1000.0)


@pytest.fixture
async def listen(client: KubeClient, clock: FakeClock) -> Listen:
    await ensure_crds(client)

    @contextlib.asynccontextmanager
    async def listen_one(*, repeat_interval: float = 3600.0, list_timeout: float = DEADLINE) -> AsyncIterator[Listener]:
        listener = Listener(client, clock, repeat_interval=repeat_interval, list_timeout=list_timeout)
        async with listener.watch.running():
            yield listener

    return listen_one


async def report(
    client: KubeClient, node: str, *unplugged: str, refused: tuple[Refusal, ...] = (), tunnel_mtu: int | None = None
) -> None:
    await NodeReports(client, node).write(
        NodeReport("2026-11-21T12:00:00Z", node, unplugged=unplugged, refused=refused, tunnel_mtu=tunnel_mtu)
    )


def _fail(_node: str, _interfaces: object) -> None:
    raise RuntimeError("on purpose")


def kept(server: FakeApiServer) -> list[str]:
    return [name for _, name in server.storage.objects(NODE_KIND)]


class TestDelivery:
    """Reports are states, not messages."""

    async def test_existing_reports_are_delivered_like_new_ones(self, client: KubeClient, listen: Listen) -> None:
        await report(client, "node-1", A, B)
        async with listen() as listener:
            assert listener.delivered == [A, B]  # on entry
            await report(client, "node-2", C)
            await listener.until_delivered(A, B, C)

    async def test_a_report_is_delivered_repeatedly_until_it_changes(self, client: KubeClient, listen: Listen) -> None:
        await report(client, "node-1", A)
        async with listen(repeat_interval=0.01) as listener:
            await listener.until(lambda: listener.delivered.count(A) == 5)
            await report(client, "node-1", B)
            await listener.until(lambda: listener.delivered.count(B) == 5)
            assert listener.delivered[-5:] == [B] * 5

    async def test_a_later_manager_gets_the_report_too(self, client: KubeClient, listen: Listen) -> None:
        await report(client, "node-1", A)
        for _ in range(2):
            async with listen() as listener:
                await listener.until_delivered(A)

    async def test_the_start_proceeds_after_a_timeout_if_reports_cannot_be_listed(
        self, client: KubeClient, server: FakeApiServer, listen: Listen, caplog: pytest.LogCaptureFixture
    ) -> None:
        await report(client, "node-1", A)
        server.faults.reject(403, verb="list", times=1000)
        async with listen(list_timeout=0.05) as listener:
            assert listener.delivered == []
            assert "node reports: not listed within 0.05 s: " in caplog.text
            server.faults.rejections.clear()
            await listener.until_delivered(A)

    async def test_refusals_are_delivered_as_they_are_now(self, client: KubeClient, listen: Listen) -> None:
        refusal = Refusal(("d", "p", "n"), 5, "node-route", "no route", "10.7.0.0/24", connected=True)
        await report(client, "node-1", refused=(refusal,))
        async with listen() as listener:
            assert listener.refused == {"node-1": (refusal,)}
            await report(client, "node-1")
            await listener.until(lambda: listener.refused == {"node-1": ()})

    async def test_a_deleted_report_refuses_nothing(self, client: KubeClient, listen: Listen) -> None:
        refusal = Refusal(("d", "p", "n"), 5, "equal-vni", "not connected")
        await report(client, "node-1", refused=(refusal,))
        async with listen() as listener:
            await client.delete(CONTRAIL_NODES, "node-1")
            await listener.until(lambda: listener.refused == {"node-1": ()})

    async def test_tunnel_mtus_are_delivered_until_the_report_is_deleted(
        self, client: KubeClient, listen: Listen
    ) -> None:
        await report(client, "node-1", tunnel_mtu=1450)
        await report(client, "node-2")
        async with listen() as listener:
            assert listener.mtus == {"node-1": 1450, "node-2": None}
            await client.delete(CONTRAIL_NODES, "node-1")
            await eventually(lambda: listener.mtus == {"node-2": None})

    async def test_an_empty_report_is_not_delivered(self, client: KubeClient, listen: Listen) -> None:
        await report(client, "node-1")
        async with listen() as listener:
            await listener.until_known(1)
            assert listener.delivered == []

    async def test_the_watch_continues_after_a_server_restart(
        self, client: KubeClient, server: FakeApiServer, listen: Listen
    ) -> None:
        async with listen() as listener:
            await report(client, "node-1", A)
            await listener.until_delivered(A)
            await server.stop()
            await server.start()
            await report(client, "node-1", B)
            await listener.until_delivered(A, B)

    async def test_an_undecodable_report_does_not_affect_others(
        self, client: KubeClient, server: FakeApiServer, listen: Listen, caplog: pytest.LogCaptureFixture
    ) -> None:
        server.put(NODE_KIND, "broken", namespace="", status={"reportedAt": 1})
        await report(client, "node-1", A)
        async with listen() as listener:
            await listener.until_delivered(A)
        assert "report of node broken: undecodable" in caplog.text

    async def test_unknown_fields_of_newer_agents_are_ignored(
        self, client: KubeClient, server: FakeApiServer, listen: Listen
    ) -> None:
        status = {"reportedAt": "2030-01-01T00:00:00Z", "instance": "i", "unplugged": [A], "mood": "fine"}
        server.put(NODE_KIND, "newer", namespace="", status=status)
        async with listen() as listener:
            await listener.until_delivered(A)

    async def test_a_failing_callback_is_logged(
        self, client: KubeClient, listen: Listen, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with listen() as listener:
            listener.watch.on_unplugged(_fail)
            await report(client, "node-1", A)
            await eventually(lambda: "node reports are no longer watched" in caplog.text)


class TestStaleReports:
    """A report unchanged for an hour is stale, by the manager's clock."""

    async def test_a_stale_report_is_removed(
        self, client: KubeClient, server: FakeApiServer, listen: Listen, clock: FakeClock
    ) -> None:
        await report(client, "gone")
        await report(client, "alive")
        async with listen() as listener:
            await listener.until_known(2)
            clock.advance(STALE_AFTER - 1)
            await listener.watch.remove_stale()
            assert len(kept(server)) == 2
            await report(client, "alive", A)
            await listener.until(lambda: listener.delivered)
            clock.advance(1)
            await listener.watch.remove_stale()
            assert kept(server) == ["alive"]
            await listener.until_known(1)

    async def test_stale_reports_are_removed_periodically(
        self, client: KubeClient, server: FakeApiServer, listen: Listen, clock: FakeClock
    ) -> None:
        await report(client, "gone")
        async with listen(repeat_interval=0.01) as listener:
            await listener.until_known(1)
            clock.advance(STALE_AFTER)
            await eventually(lambda: not kept(server))

    async def test_a_report_updated_at_the_last_moment_stays(
        self, client: KubeClient, server: FakeApiServer, listen: Listen, clock: FakeClock
    ) -> None:
        await report(client, "slow")
        async with listen() as listener:
            await listener.until_known(1)
            clock.advance(STALE_AFTER)
            server.faults.silent = True
            server.cut_watches()
            await report(client, "slow", A)
            await listener.watch.remove_stale()
        assert kept(server) == ["slow"]

    async def test_a_report_deleted_by_somebody_else_is_no_error(
        self, client: KubeClient, server: FakeApiServer, listen: Listen, clock: FakeClock
    ) -> None:
        await report(client, "gone")
        async with listen() as listener:
            await listener.until_known(1)
            clock.advance(STALE_AFTER)
            server.faults.silent = True
            await client.delete(CONTRAIL_NODES, "gone")
            await listener.watch.remove_stale()

    async def test_a_denied_removal_is_retried(
        self,
        client: KubeClient,
        server: FakeApiServer,
        listen: Listen,
        clock: FakeClock,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        await report(client, "gone")
        async with listen() as listener:
            await listener.until_known(1)
            clock.advance(STALE_AFTER)
            server.faults.reject(403, verb="delete")
            await listener.watch.remove_stale()
            assert "report of node gone: not removed" in caplog.text
            await listener.watch.remove_stale()
            assert kept(server) == []
