"""A node's report has the version of its daemon, and what the datapath repaired."""

from agent_api.datapath.kind import Datapath
from agent_api.datapath.report import DatapathReport
from tests.agent_api.conftest import StartAgent
from tests.agent_api.node.conftest import VERSIONS, MakeReporter, RecordedReports
from tests.support.served_agent import until


async def test_repairs_and_the_daemons_version_are_reported(
    start_agent: StartAgent, make_reporter: MakeReporter, reports: RecordedReports
) -> None:
    linux = await start_agent(datapath=Datapath.LINUX)
    await until(lambda: linux.agent.virtual_machines.synced)
    assert linux.agent.datapath is not None
    reporter = make_reporter(linux)
    await reporter.report()
    for repairs in ({"filter": 2}, {"filter": 1, "route": 1}):
        linux.agent.datapath.report(
            DatapathReport("v1", changes=0, repaired=3, seconds=0.1, repairs=repairs, daemon_version="1.3.0")
        )
        await reporter.report()
    assert [report.repairs for report in reports.written] == [{}, {"filter": 2}, {"filter": 3, "route": 1}]
    assert [report.versions for report in reports.written] == [VERSIONS] + 2 * [VERSIONS | {"daemon": "1.3.0"}]
