"""A node's report has the tunnel MTU that its daemon has measured."""

from agent_api.datapath.kind import Datapath
from agent_api.datapath.report import DatapathReport
from tests.agent_api.conftest import StartAgent
from tests.agent_api.node.conftest import MakeReporter, RecordedReports
from tests.support.served_agent import ServedAgent, until


async def test_the_measured_tunnel_mtu_is_reported_and_its_changes(
    start_agent: StartAgent, make_reporter: MakeReporter, reports: RecordedReports
) -> None:
    linux = await start_agent(datapath=Datapath.LINUX)
    await until(lambda: linux.agent.virtual_machines.synced)
    assert linux.agent.datapath is not None
    reporter = make_reporter(linux)
    await reporter.report()
    for mtu in (1450, 8950):
        linux.agent.datapath.report(DatapathReport("v1", changes=0, repaired=0, seconds=0.1, tunnel_mtu=mtu))
        await reporter.report()
    assert [report.tunnel_mtu for report in reports.written] == [None, 1450, 8950]


async def test_without_a_datapath_none_is_reported(
    served: ServedAgent, make_reporter: MakeReporter, reports: RecordedReports
) -> None:
    await until(lambda: served.agent.virtual_machines.synced)
    await make_reporter(served).report()
    assert [report.tunnel_mtu for report in reports.written] == [None]
