"""A node's report has the kernel modules that its datapath lacks."""

from tests.agent_api.node.conftest import RecordedReports, ReportWith


async def test_missing_modules_are_reported_until_they_are_loaded(
    report_with: ReportWith, reports: RecordedReports
) -> None:
    for modules in (("bridge", "vxlan"), ()):
        await report_with(missing_modules=modules)
    assert [report.missing_modules for report in reports.written] == [(), ("bridge", "vxlan"), ()]
