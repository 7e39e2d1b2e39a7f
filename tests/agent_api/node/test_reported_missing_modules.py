"""A node's report has the kernel modules that its datapath lacks."""

from agent_api.datapath.kind import Datapath
from agent_api.datapath.report import DatapathReport
from tests.agent_api.conftest import StartAgent
from tests.agent_api.node.conftest import MakeReporter, RecordedReports
from tests.support.served_agent import until


async def test_missing_modules_are_reported_until_they_are_loaded(
    start_agent: StartAgent, make_reporter: MakeReporter, reports: RecordedReports
) -> None:
    linux = await start_agent(datapath=Datapath.LINUX)
    await until(lambda: linux.agent.virtual_machines.synced)
    assert linux.agent.datapath is not None
    reporter = make_reporter(linux)
    await reporter.report()
    for modules in (("bridge", "vxlan"), ()):
        linux.agent.datapath.report(DatapathReport("v1", changes=0, repaired=0, seconds=0.1, missing_modules=modules))
        await reporter.report()
    assert [report.missing_modules for report in reports.written] == [(), ("bridge", "vxlan"), ()]
