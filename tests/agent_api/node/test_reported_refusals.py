"""A node's report lists what its datapath does not connect or route, bounded."""

import msgspec
import pytest

from agent_api.datapath.kind import Datapath
from agent_api.datapath.report import DatapathReport, RefusedRoute
from contrail_config.embedded.store import SqliteStore
from tests.agent_api.conftest import StartAgent
from tests.agent_api.node.conftest import MakeReporter, RecordedReports
from tests.support.served_agent import ServedAgent, until
from tests.support.virtual_machines import SAMPLE_VM, left_interface, make_virtual_machine, pod_interface


@pytest.fixture
async def linux(start_agent: StartAgent, store: SqliteStore) -> ServedAgent:
    """An agent with a pod in the network with VNI 5, whose desired state has been served."""
    served = await start_agent(datapath=Datapath.LINUX)
    left = msgspec.structs.replace(left_interface(SAMPLE_VM, 1), vni=5)
    pod = make_virtual_machine(uid=SAMPLE_VM, interfaces=(pod_interface(SAMPLE_VM), left))
    await store.put_virtual_machine(pod)
    await until(lambda: served.agent.virtual_machines.by_uuid(pod.uuid) is not None)
    async with served.unix.get("/datapath") as answer:
        assert answer.status == 200
    return served


async def test_refused_routes_are_reported_until_they_end(
    linux: ServedAgent, make_reporter: MakeReporter, reports: RecordedReports
) -> None:
    reporter = make_reporter(linux)
    for refused in ([RefusedRoute(5, "8.8.8.0/24", "not-allowed")], []):
        add_report(linux, refused)
        await reporter.report()
    with_refusal, without = reports.written
    (refusal,) = with_refusal.refused
    assert (refusal.network[2], refusal.subnet, refusal.reason) == ("k8s-left-pod-network", "8.8.8.0/24", "not-allowed")
    assert refusal.message.endswith("it is not in the agent's fabric-subnets")
    assert without.refused == ()


async def test_a_report_has_a_bounded_number_of_them_and_the_same_ones_each_time(
    linux: ServedAgent, make_reporter: MakeReporter, reports: RecordedReports
) -> None:
    reporter = make_reporter(linux)
    refused = [RefusedRoute(5, f"10.{number}.0.0/16", "not-allowed") for number in range(256)]
    for each in (refused, refused[::-1]):
        add_report(linux, each)
        await reporter.report()
    (report,) = reports.written
    assert len(report.refused) == 32


def add_report(served: ServedAgent, refused: list[RefusedRoute]) -> None:
    assert served.agent.datapath is not None
    served.agent.datapath.report(DatapathReport("v1", 0, 0, 0.0, refused=tuple(refused)))
