"""What went wrong on a node lately is in its report: a few lines, none of them long, none of them for ever."""

import logging

import pytest

from agent_api.node.expiring_set import ExpiringSet
from agent_api.node.reporter import NodeReporter, record_errors
from tests.agent_api.conftest import Settle
from tests.agent_api.node.conftest import KeptReports
from tests.support.clock import FakeClock


@pytest.fixture
def notes(clock: FakeClock) -> ExpiringSet:
    return ExpiringSet(max_size=3, ttl=60.0, clock=clock)


class TestNotes:
    """Of errors, conflicts and interfaces alike."""

    def test_the_newest_come_first_and_each_once(self, notes: ExpiringSet) -> None:
        for text in ("a", "b", "a"):
            notes.add(text)
        assert notes.newest_first() == ("a", "b")

    def test_only_so_many_are_kept(self, notes: ExpiringSet) -> None:
        for number in range(100):
            notes.add(str(number))
        assert notes.newest_first() == ("99", "98", "97")

    def test_they_are_forgotten_in_time_but_not_while_they_are_noted_anew(
        self, notes: ExpiringSet, clock: FakeClock
    ) -> None:
        notes.add("old")
        notes.add("lasting")
        clock.advance(30)
        notes.add("lasting")
        clock.advance(30)
        assert notes.newest_first() == ("lasting",)


class TestErrors:
    """They are taken from the log."""

    def test_errors_are_noted_and_warnings_are_not(self, notes: ExpiringSet) -> None:
        log = logging.getLogger("agent_api.anything")
        with record_errors(notes):
            log.warning("never mind")
            log.error("port %s is lost", "tap0")
        log.error("nobody listens any more")
        assert notes.newest_first() == ("port tap0 is lost",)

    def test_a_long_one_is_cut(self, notes: ExpiringSet) -> None:
        with record_errors(notes):
            logging.getLogger("any").error("x" * 10_000)
        assert [len(text) for text in notes.newest_first()] == [256]


async def test_another_agent_of_the_same_node_is_told_for_a_while(
    settle: Settle, reporter: NodeReporter, reports: KeptReports, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    await settle()
    reports.other = ["worker-9_12345678"]
    await reporter.report()
    assert "another agent reports for this node: worker-9_12345678" in caplog.text
    await reporter.report()
    await reporter.report()
    clock.advance(3600)
    await reporter.report()
    told = ("another agent reports for this node: worker-9_12345678",)
    assert [report.conflicts for report in reports.written] == [(), told, ()]
