"""A node's report has the tunnel MTU that its daemon has measured."""

from tests.agent_api.node.conftest import MakeReporter, RecordedReports, ReportWith
from tests.support.served_agent import ServedAgent, until


async def test_the_measured_tunnel_mtu_is_reported_and_its_changes(
    report_with: ReportWith, reports: RecordedReports
) -> None:
    for mtu in (1450, 8950):
        await report_with(tunnel_mtu=mtu)
    assert [report.tunnel_mtu for report in reports.written] == [None, 1450, 8950]


async def test_without_a_datapath_none_is_reported(
    served: ServedAgent, make_reporter: MakeReporter, reports: RecordedReports
) -> None:
    await until(lambda: served.agent.virtual_machines.synced)
    await make_reporter(served).report()
    assert [report.tunnel_mtu for report in reports.written] == [None]
