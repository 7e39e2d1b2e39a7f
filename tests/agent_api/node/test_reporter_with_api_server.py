"""Node reports on an API server, through restarts of agents and outages of the server."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from agent_api.node.reporter import NodeReporter
from contrail_config.kube.client import connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import CONTRAIL_NODES, NodeReport
from contrail_config.kubernetes.node_reports import NodeReports
from contrail_config.kubernetes.store import KubernetesStore
from tests.agent_api.node.conftest import VERSIONS
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.fake_clock import FakeClock
from tests.support.served_agent import ServedAgent, port_of, serve_agent, until
from tests.support.virtual_machines import NODE, make_virtual_machine

Join = Callable[[str], AbstractAsyncContextManager["Joined"]]

VIRTUAL_MACHINE = make_virtual_machine("web-0")
(INTERFACE,) = VIRTUAL_MACHINE.interfaces


class Joined:
    """An agent of the node, with its store on the server."""

    def __init__(self, served: ServedAgent, store: KubernetesStore, reporter: NodeReporter) -> None:
        self.served = served
        self.store = store
        self.reporter = reporter

    async def has_synced(self, virtual_machines: int) -> None:
        """Waits until the agent has received this number of VirtualMachines."""
        await until(
            lambda: (
                self.served.agent.virtual_machines.synced
                and len(self.served.agent.virtual_machines) == virtual_machines
            )
        )


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with serve_fake_apiserver() as server, connect(ClientConfig(server.url)) as client:
        await ensure_crds(client)
        yield server


@pytest.fixture
def join(server: FakeApiServer, tmp_path: Path, clock: FakeClock) -> Join:
    """Starts an agent with its ports in a directory of this name."""

    @contextlib.asynccontextmanager
    async def join_one(folder: str) -> AsyncIterator[Joined]:
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(connect(ClientConfig(server.url), deadline=2))
            store = KubernetesStore(client)
            stack.push_async_callback(store.close)
            served = await stack.enter_async_context(serve_agent(store, place))
            reports = NodeReports(client, NODE)
            joined = Joined(served, store, NodeReporter(served.agent, reports, versions=VERSIONS, clock=clock))
            await joined.has_synced(len(await store.virtual_machines()))
            yield joined

    return join_one


async def reported(server: FakeApiServer) -> NodeReport:
    async with connect(ClientConfig(server.url)) as client:
        return (await client.get(CONTRAIL_NODES, NODE)).status


async def test_two_agents_of_one_node_report_a_conflict(server: FakeApiServer, join: Join, clock: FakeClock) -> None:
    async with join("one") as one, join("other") as other:
        for agent in (one, other, one, one):
            clock.advance(600.0)  # heartbeats
            await agent.reporter.report()
        found = await reported(server)
        assert found.instance == one.reporter.instance
        assert found.conflicts == (f"another agent reports for this node: {other.reporter.instance}",)


async def test_a_restarted_agent_is_no_conflict(server: FakeApiServer, join: Join) -> None:
    for _ in range(2):
        async with join("one") as agent:
            await agent.reporter.report()
            await agent.reporter.report()
    assert (await reported(server)).conflicts == ()


async def test_ports_of_a_killed_agent_are_reported_by_the_next_one(server: FakeApiServer, join: Join) -> None:
    async with join("one") as killed:
        await killed.store.put_virtual_machine(VIRTUAL_MACHINE)
        async with killed.served.unix.post("/vm", json=port_of(VIRTUAL_MACHINE.uuid, INTERFACE.uuid)) as answer:
            assert answer.status == 200
    async with join("one") as agent:
        await agent.store.delete_virtual_machine(VIRTUAL_MACHINE.uuid)
        await agent.has_synced(0)
        await agent.reporter.report()
        assert (await reported(server)).pending_deletes == 1
        async with agent.served.unix.delete(f"/vm/{VIRTUAL_MACHINE.uuid}") as answer:
            assert answer.status == 200
        await agent.reporter.report()
    found = await reported(server)
    assert (found.pending_deletes, found.unplugged) == (0, (INTERFACE.uuid,))


async def test_changes_during_an_outage_of_the_server_are_reported_afterwards(
    server: FakeApiServer, join: Join
) -> None:
    async with join("one") as agent:
        await agent.store.put_virtual_machine(VIRTUAL_MACHINE)
        async with agent.served.unix.post("/vm", json=port_of(VIRTUAL_MACHINE.uuid, INTERFACE.uuid)) as answer:
            assert answer.status == 200
        await agent.has_synced(1)
        await agent.store.delete_virtual_machine(VIRTUAL_MACHINE.uuid)
        await agent.has_synced(0)
        await server.stop()
        async with agent.served.unix.delete(f"/vm/{VIRTUAL_MACHINE.uuid}") as answer:
            assert answer.status == 200
        pause = await agent.reporter.report()
        assert pause >= 10.0
        await server.start()
        await agent.reporter.report()
    assert (await reported(server)).unplugged == (INTERFACE.uuid,)
