"""Log limit: each message template has a bounded number of lines, and what is left out is counted."""

import io
import logging
from collections.abc import Iterator

import pytest

from contrail_service.log_limit import BURST, MAX_TEMPLATES, RATE, REPORT_INTERVAL, LimitedStreamHandler
from contrail_service.logs import set_up_logs
from tests.support.fake_clock import FakeClock

FAILING = 20_000
LOG = logging.getLogger("tests.log_limit")


class Limited:
    """A logger on a limited handler, with a clock of its own."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.stream = io.StringIO()
        self.handler = LimitedStreamHandler(self.stream, clock=self.clock)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


@pytest.fixture
def limited() -> Iterator[Limited]:
    limited = Limited()
    LOG.addHandler(limited.handler)
    LOG.propagate, LOG.level = False, logging.DEBUG
    yield limited
    LOG.removeHandler(limited.handler)
    LOG.propagate, LOG.level = True, logging.NOTSET


def test_many_failing_pods_log_few_lines_a_minute(limited: Limited) -> None:
    for number in range(FAILING):
        LOG.warning("%s: retry in %.1f s: %s", f"shop/web-{number}", 1.0, "the store is unavailable")
        limited.clock.advance(60 / FAILING)
    assert BURST < len(limited.lines) <= BURST + 60 * RATE + 2


def test_what_was_left_out_is_counted_once_a_minute(limited: Limited) -> None:
    for _ in range(BURST + 7):
        LOG.warning("%s failed", "a")
    assert len(limited.lines) == BURST
    limited.clock.advance(REPORT_INTERVAL)
    LOG.info("another line")
    assert limited.lines[BURST:] == ["7 more lines like this were left out: %s failed", "another line"]
    limited.clock.advance(REPORT_INTERVAL)
    LOG.info("another line")
    assert limited.lines[BURST + 2 :] == ["another line"]


def test_what_was_left_out_is_counted_at_the_end(limited: Limited) -> None:
    for _ in range(BURST + 7):
        LOG.warning("%s failed", "a")
    limited.handler.close()
    assert limited.lines[BURST:] == ["7 more lines like this were left out: %s failed"]


def test_other_messages_loggers_and_levels_are_not_affected(limited: Limited) -> None:
    for _ in range(BURST + 1):
        LOG.warning("%s failed", "a")
    LOG.warning("%s started", "a")
    LOG.info("%s failed", "a")
    limited.handler.handle(logging.makeLogRecord({"name": "other", "levelno": logging.WARNING, "msg": "%s failed"}))
    assert len(limited.lines) == BURST + 3


def test_texts_without_arguments_are_limited_if_they_differ_by_numbers(limited: Limited) -> None:
    """As those of asyncio about exceptions that nobody has retrieved."""
    for number in range(BURST + 7):
        LOG.error(f"task {number} failed")  # noqa: G004 - such texts are the case
    LOG.error("something else failed")
    limited.handler.close()
    last = f"task {BURST + 6} failed"
    assert limited.lines[BURST:] == ["something else failed", f"7 more lines like this were left out: {last}"]


def test_debug_lines_are_not_limited(limited: Limited) -> None:
    for _ in range(2 * BURST):
        LOG.debug("%s", "a")
    assert len(limited.lines) == 2 * BURST


def test_the_number_of_templates_is_bounded(limited: Limited) -> None:
    for number in range(MAX_TEMPLATES + 100):
        call = {"name": f"x{number}", "levelno": logging.INFO, "msg": "text"}
        limited.handler.handle(logging.makeLogRecord(call))
    assert len(limited.lines) == MAX_TEMPLATES + 100
    assert len(limited.handler._buckets) == MAX_TEMPLATES  # the bound on memory


@pytest.mark.usefixtures("restored_logging")
def test_the_logs_of_a_process_are_limited(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(json_lines=True, level="info")
    for number in range(2 * BURST):
        LOG.warning("%s failed", number)
    assert BURST <= len(capsys.readouterr().err.splitlines()) < 2 * BURST
