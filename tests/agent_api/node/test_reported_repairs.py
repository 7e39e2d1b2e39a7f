"""A node's report has the version of its daemon, and what the datapath repaired."""

import time
from datetime import datetime

from agent_api.datapath.kind import Datapath
from agent_api.datapath.report import DatapathReport
from contrail_config.embedded.store import SqliteStore
from tests.agent_api.conftest import StartAgent
from tests.agent_api.datapath.test_unconnected_ports import make_pod, plug
from tests.agent_api.node.conftest import VERSIONS, MakeReporter, RecordedReports, ReportWith


async def test_repairs_and_the_daemons_version_are_reported(report_with: ReportWith, reports: RecordedReports) -> None:
    for repairs in ({"filter": 2}, {"filter": 1, "route": 1}):
        await report_with(repairs=repairs, daemon_version="1.3.0")
    assert [report.repairs for report in reports.written] == [{}, {"filter": 2}, {"filter": 3, "route": 1}]
    assert [report.versions for report in reports.written] == [VERSIONS] + 2 * [VERSIONS | {"daemon": "1.3.0"}]


async def test_networks_that_were_repaired_are_reported_by_name(
    start_agent: StartAgent, store: SqliteStore, make_reporter: MakeReporter, reports: RecordedReports
) -> None:
    linux = await start_agent(datapath=Datapath.LINUX)
    assert linux.agent.datapath is not None
    pod = make_pod(vni=5)
    await plug(linux, store, [pod])
    for repaired in ({"5": 1, "0": 1, "9": 1}, {"5": 2}):  # 9 is that of no network, 0 of no single one
        report = DatapathReport("v1", changes=0, repaired=0, seconds=0.1, repaired_networks=repaired)
        linux.agent.datapath.report(report)
    await make_reporter(linux).report()
    (found,) = reports.written[-1].repaired_networks
    assert (found.network, found.vni, found.repairs) == (pod.interfaces[1].network, 5, 3)
    assert abs(datetime.fromisoformat(found.latest).timestamp() - time.time()) < 60
