"""A node's report has the version of its daemon, and what the datapath repaired."""

from tests.agent_api.node.conftest import VERSIONS, RecordedReports, ReportWith


async def test_repairs_and_the_daemons_version_are_reported(report_with: ReportWith, reports: RecordedReports) -> None:
    for repairs in ({"filter": 2}, {"filter": 1, "route": 1}):
        await report_with(repairs=repairs, daemon_version="1.3.0")
    assert [report.repairs for report in reports.written] == [{}, {"filter": 2}, {"filter": 3, "route": 1}]
    assert [report.versions for report in reports.written] == [VERSIONS] + 2 * [VERSIONS | {"daemon": "1.3.0"}]
