"""Recent errors and conflicts in the node report: limited in number, length and age."""

import logging

import pytest

from agent_api.node.expiring_set import ExpiringSet
from agent_api.node.reporter import NodeReporter, record_errors
from tests.agent_api.conftest import WaitForSync
from tests.agent_api.node.conftest import RecordedReports
from tests.support.fake_clock import FakeClock


@pytest.fixture
def entries(clock: FakeClock) -> ExpiringSet:
    return ExpiringSet(max_size=3, ttl=60.0, clock=clock)


class TestExpiringSet:
    """Used for errors, conflicts and interfaces alike."""

    def test_entries_are_distinct_and_newest_first(self, entries: ExpiringSet) -> None:
        for text in ("a", "b", "a"):
            entries.add(text)
        assert entries.newest_first() == ("a", "b")

    def test_the_oldest_are_evicted_above_the_maximum(self, entries: ExpiringSet) -> None:
        for number in range(100):
            entries.add(str(number))
        assert entries.newest_first() == ("99", "98", "97")

    def test_entries_expire_unless_they_are_renewed(self, entries: ExpiringSet, clock: FakeClock) -> None:
        entries.add("old")
        entries.add("lasting")
        clock.advance(30)
        entries.add("lasting")
        clock.advance(30)
        assert entries.newest_first() == ("lasting",)


class TestRecordErrors:
    """Errors are taken from the log."""

    def test_errors_are_recorded_and_warnings_are_not(self, entries: ExpiringSet) -> None:
        log = logging.getLogger("agent_api.anything")
        with record_errors(entries):
            log.warning("never mind")
            log.error("port %s is lost", "tap0")
        log.error("no longer recorded")
        assert entries.newest_first() == ("port tap0 is lost",)

    def test_a_long_error_is_truncated(self, entries: ExpiringSet) -> None:
        with record_errors(entries):
            logging.getLogger("any").error("x" * 10_000)
        assert [len(text) for text in entries.newest_first()] == [256]


async def test_a_conflict_with_another_agent_is_reported_until_it_expires(
    wait_for_sync: WaitForSync,
    reporter: NodeReporter,
    reports: RecordedReports,
    clock: FakeClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await wait_for_sync()
    reports.other = ["worker-9_12345678"]
    await reporter.report()
    assert "another agent reports for this node: worker-9_12345678" in caplog.text
    await reporter.report()
    await reporter.report()
    clock.advance(3600)
    await reporter.report()
    conflicts = ("another agent reports for this node: worker-9_12345678",)
    assert [report.conflicts for report in reports.written] == [(), conflicts, ()]
