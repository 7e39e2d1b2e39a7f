"""A report is written on a change, at most every 10 s, and as a heartbeat; failures cause exponential backoff."""

import asyncio
import itertools
import logging
import os
import time

import msgspec
import pytest

from agent_api.node.reporter import NodeReporter, ReportIntervals, record_errors
from contrail_config.errors import StoreUnavailableError
from tests.agent_api.conftest import WaitForSync
from tests.agent_api.node.conftest import VERSIONS, RecordedReports
from tests.support.fake_clock import FakeClock
from tests.support.recorded_reflector import eventually
from tests.support.served_agent import DEADLINE, ServedAgent

INTERVALS = ReportIntervals()


@pytest.fixture(autouse=True)
async def listed(wait_for_sync: WaitForSync) -> None:
    """The agent has listed its VirtualMachines."""
    await wait_for_sync()


async def test_the_first_report_names_reporter_and_time(reporter: NodeReporter, reports: RecordedReports) -> None:
    await reporter.report()
    (report,) = reports.written
    assert report.versions == VERSIONS
    assert report.instance
    written = time.mktime(time.strptime(report.reported_at, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert written == pytest.approx(time.time(), abs=DEADLINE)


async def test_nothing_is_reported_before_the_virtual_machines_are_listed(
    served: ServedAgent, reporter: NodeReporter, reports: RecordedReports
) -> None:
    served.agent.virtual_machines.synced = False
    await reporter.report()
    assert not reports.written


async def test_only_heartbeats_are_written_without_changes(
    reporter: NodeReporter, reports: RecordedReports, clock: FakeClock
) -> None:
    for _ in range(360):
        await reporter.report()
        clock.advance(10.0)
    assert 3600 / (INTERVALS.heartbeat * 1.25) - 1 <= len(reports.written) <= 3600 / INTERVALS.heartbeat + 1


async def test_a_change_is_written_at_the_next_interval(
    reporter: NodeReporter, reports: RecordedReports, clock: FakeClock
) -> None:
    pauses = [await reporter.report()]
    reporter.errors.add("disk full")
    pauses.append(await reporter.report())
    assert [report.last_errors for report in reports.written] == [(), ("disk full",)]
    assert all(INTERVALS.interval <= pause <= INTERVALS.interval * 1.25 for pause in pauses)


async def test_failures_back_off_until_a_write_succeeds(
    reporter: NodeReporter, reports: RecordedReports, caplog: pytest.LogCaptureFixture
) -> None:
    reports.failure = StoreUnavailableError("report of node worker-1: no route to host")
    pauses = [await reporter.report() for _ in range(20)]
    assert all(INTERVALS.interval <= pause <= INTERVALS.max_backoff for pause in pauses)
    assert all(pause >= INTERVALS.max_backoff / 2 for pause in pauses[-10:])
    assert "no route to host" in caplog.text
    reports.failure = None
    assert await reporter.report() <= INTERVALS.interval * 1.25
    assert len(reports.written) == 1
    reports.failure = StoreUnavailableError("again")
    reporter.errors.add("news")
    assert await reporter.report() <= 2 * INTERVALS.interval


async def test_changes_during_failures_are_in_the_next_report(reporter: NodeReporter, reports: RecordedReports) -> None:
    await reporter.report()
    reports.failure = StoreUnavailableError("away")
    reporter.errors.add("while it was away")
    await reporter.report()
    reports.failure = None
    await reporter.report()
    assert reports.written[-1].last_errors == ("while it was away",)


async def test_setting_the_wall_clock_causes_no_report(
    reporter: NodeReporter, reports: RecordedReports, monkeypatch: pytest.MonkeyPatch
) -> None:
    await reporter.report()
    now = time.time()
    for jump in (-86400.0, 86400.0):
        monkeypatch.setattr(time, "time", lambda jump=jump: now + jump)
        await reporter.report()
    assert len(reports.written) == 1


async def test_it_runs_and_reports_logged_errors(served: ServedAgent, reports: RecordedReports) -> None:
    intervals = ReportIntervals(interval=0.001)
    reporter = NodeReporter(served.agent, reports, versions=VERSIONS, intervals=intervals)
    task = asyncio.create_task(reporter.run())
    try:
        await eventually(lambda: reports.written)
        logging.getLogger("agent_api.ports.table").error("nothing plugged: %s", "disk full")
        await eventually(lambda: reports.written[-1].last_errors == ("nothing plugged: disk full",))
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert all(one != other for one, other in itertools.pairwise(reports.written))


async def test_an_error_with_a_file_name_that_is_not_utf_8_can_be_reported(
    served: ServedAgent, reports: RecordedReports
) -> None:
    reporter = NodeReporter(served.agent, reports, versions=VERSIONS)
    # Not through a logger: pytest would send the captured text to its workers, and it cannot be encoded.
    name = "agent_api.ports.directory"
    record = logging.LogRecord(name, logging.ERROR, __file__, 1, "not a port: %s", (os.fsdecode(b"\xff"),), None)
    with record_errors(reporter.errors):
        logging.getLogger().handlers[-1].handle(record)
    await reporter.report()
    assert msgspec.json.encode(reports.written[-1])
    assert reports.written[-1].last_errors == ("not a port: ?",)


async def test_agents_that_start_together_report_at_different_times(
    served: ServedAgent, reports: RecordedReports, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def note(_reporter: NodeReporter, seconds: float) -> None:
        pauses.append(seconds)
        raise asyncio.CancelledError

    monkeypatch.setattr(NodeReporter, "_wait", note)
    for _ in range(50):
        with pytest.raises(asyncio.CancelledError):
            await NodeReporter(served.agent, reports, versions=VERSIONS).run()
    assert len(set(pauses)) == 50
    assert all(0.0 <= pause <= INTERVALS.interval for pause in pauses)
