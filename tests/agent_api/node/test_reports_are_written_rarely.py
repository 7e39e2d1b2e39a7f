"""A report is written when something changed, no sooner than every 10 s, and now and then to show that somebody is
there; failures make it rarer."""

import asyncio
import itertools
import logging
import time

import pytest

from agent_api.node.reporter import NodeReporter, ReportIntervals
from contrail_config.errors import StoreUnavailableError
from tests.agent_api.conftest import Settle
from tests.agent_api.node.conftest import VERSIONS, KeptReports
from tests.support.agent import DEADLINE, ServedAgent
from tests.support.clock import FakeClock
from tests.support.following import eventually

PACE = ReportIntervals()


@pytest.fixture(autouse=True)
async def listed(settle: Settle) -> None:
    """The agent knows its machines."""
    await settle()


async def test_the_first_report_says_who_reports_and_when(reporter: NodeReporter, reports: KeptReports) -> None:
    await reporter.report()
    (report,) = reports.written
    assert report.versions == VERSIONS
    assert report.instance
    written = time.mktime(time.strptime(report.reported_at, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert written == pytest.approx(time.time(), abs=DEADLINE)


async def test_before_the_machines_are_listed_nothing_is_told(
    served: ServedAgent, reporter: NodeReporter, reports: KeptReports
) -> None:
    served.agent.virtual_machines.synced = False
    await reporter.report()
    assert not reports.written


async def test_while_nothing_changes_only_the_heartbeat_is_written(
    reporter: NodeReporter, reports: KeptReports, clock: FakeClock
) -> None:
    for _ in range(360):
        await reporter.report()
        clock.advance(10.0)
    assert 3600 / (PACE.heartbeat * 1.25) - 1 <= len(reports.written) <= 3600 / PACE.heartbeat + 1


async def test_a_change_is_written_at_the_next_moment(
    reporter: NodeReporter, reports: KeptReports, clock: FakeClock
) -> None:
    pauses = [await reporter.report()]
    reporter.errors.add("disk full")
    pauses.append(await reporter.report())
    assert [report.last_errors for report in reports.written] == [(), ("disk full",)]
    assert all(PACE.interval <= pause <= PACE.interval * 1.25 for pause in pauses)


async def test_failures_make_it_rarer_until_one_write_succeeds(
    reporter: NodeReporter, reports: KeptReports, caplog: pytest.LogCaptureFixture
) -> None:
    reports.failure = StoreUnavailableError("report of node worker-1: no route to host")
    pauses = [await reporter.report() for _ in range(20)]
    assert all(PACE.interval <= pause <= PACE.longest_pause for pause in pauses)
    assert all(pause >= PACE.longest_pause / 2 for pause in pauses[-10:])
    assert "no route to host" in caplog.text
    reports.failure = None
    assert await reporter.report() <= PACE.interval * 1.25
    assert len(reports.written) == 1
    reports.failure = StoreUnavailableError("again")
    reporter.errors.add("news")
    assert await reporter.report() <= 2 * PACE.interval


async def test_what_changed_while_nothing_could_be_written_is_in_the_next_report(
    reporter: NodeReporter, reports: KeptReports
) -> None:
    await reporter.report()
    reports.failure = StoreUnavailableError("away")
    reporter.errors.add("while it was away")
    await reporter.report()
    reports.failure = None
    await reporter.report()
    assert reports.written[-1].last_errors == ("while it was away",)


async def test_setting_the_time_of_day_changes_nothing_but_what_is_told(
    reporter: NodeReporter, reports: KeptReports, monkeypatch: pytest.MonkeyPatch
) -> None:
    await reporter.report()
    now = time.time()
    for jump in (-86400.0, 86400.0):
        monkeypatch.setattr(time, "time", lambda jump=jump: now + jump)
        await reporter.report()
    assert len(reports.written) == 1


async def test_it_goes_on_by_itself_with_the_errors_of_the_log(served: ServedAgent, reports: KeptReports) -> None:
    pace = ReportIntervals(interval=0.001)
    reporter = NodeReporter(served.agent, reports, versions=VERSIONS, intervals=pace)
    task = asyncio.create_task(reporter.run())
    try:
        await eventually(lambda: reports.written)
        logging.getLogger("agent_api.ports.table").error("nothing plugged: %s", "disk full")
        await eventually(lambda: reports.written[-1].last_errors == ("nothing plugged: disk full",))
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert all(one != other for one, other in itertools.pairwise(reports.written))


async def test_agents_that_start_together_do_not_report_together(
    served: ServedAgent, reports: KeptReports, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(seconds)
        raise asyncio.CancelledError

    monkeypatch.setattr("agent_api.node.reporter.asyncio.sleep", note)
    for _ in range(50):
        with pytest.raises(asyncio.CancelledError):
            await NodeReporter(served.agent, reports, versions=VERSIONS).run()
    assert len(set(pauses)) == 50
    assert all(0.0 <= pause <= PACE.interval for pause in pauses)
