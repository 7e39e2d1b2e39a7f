"""A node's report says what connects its pods, and why its agent is not ready."""

from agent_api.datapath.kind import Datapath
from agent_api.datapath.report import DatapathReport
from agent_api.node.reporter import NodeReporter
from tests.agent_api.conftest import StartAgent
from tests.agent_api.node.conftest import MakeReporter, RecordedReports
from tests.support.fake_clock import FakeClock
from tests.support.served_agent import ServedAgent, until


async def test_reasons_are_reported_until_they_are_gone(
    start_agent: StartAgent, make_reporter: MakeReporter, reports: RecordedReports
) -> None:
    linux = await start_agent(datapath=Datapath.LINUX)
    await until(lambda: linux.agent.virtual_machines.synced)
    assert linux.agent.datapath is not None
    reporter = make_reporter(linux)
    for problems in ({"7": "permission denied \udcff"}, {"8": "x" * 1000}, {}):
        report = DatapathReport("v1", changes=0, repaired=0, seconds=0.1, problems=problems)
        linux.agent.datapath.report(report)
        await reporter.report()
    cut = "datapath: VNI 8: " + 1000 * "x"
    assert [report.not_ready for report in reports.written] == [
        ("datapath: VNI 7: permission denied ?",),
        (cut[:256],),
        (),
    ]
    assert {report.datapath for report in reports.written} == {"linux"}


async def test_silence_of_the_daemon_is_written_once(
    start_agent: StartAgent, reports: RecordedReports, clock: FakeClock, make_reporter: MakeReporter
) -> None:
    linux = await start_agent(datapath=Datapath.LINUX)
    await until(lambda: linux.agent.virtual_machines.synced)
    assert linux.agent.datapath is not None
    reporter: NodeReporter = make_reporter(linux)
    linux.agent.datapath.reports._clock = clock
    linux.agent.datapath.report(DatapathReport("v1", changes=0, repaired=0, seconds=0.1))
    for _ in range(12):
        clock.advance(10.0)
        await reporter.report()
    assert [report.not_ready for report in reports.written] == [
        (),
        ("datapath: nothing reported for more than 60 s: contrail-cnid does not program it",),
    ]


async def test_a_node_without_a_datapath_of_ours_says_so(
    served: ServedAgent, make_reporter: MakeReporter, reports: RecordedReports
) -> None:
    await until(lambda: served.agent.virtual_machines.synced)
    await make_reporter(served).report()
    assert [(report.datapath, report.not_ready) for report in reports.written] == [("none", ())]
