"""Log handler that limits the lines of each message template, so that an outage cannot fill the disk.

Each object that fails logs a line, and there may be 150,000 of them: a rate for each object would bound nothing. So
lines are counted by logger, level and template (the message before its arguments are filled in). A text without
arguments may be unique, as those of asyncio are, which name a task: its template is the text without its numbers. Up to
1,000 lines of one template pass at once, then 50 per second; once a minute one line for each template says how many
were left out.
Lines of level DEBUG are not limited: who asks for them wants them all.

Not limited: the number of templates, which is about that of the log calls in the code. Beyond 1,024 of them the one
that was used the longest time ago is forgotten.
"""

import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, TextIO

from contrail_service.token_bucket import TokenBucket

RATE = 50.0
"""Lines of one template per second."""

BURST = 1000

REPORT_INTERVAL = 60.0
"""Seconds between two lines that say how many were left out."""

MAX_TEMPLATES = 1024

_MAX_TEXT = 200
_NUMBER = re.compile(r"0x[0-9a-f]+|[0-9]+")


class _Template(NamedTuple):
    logger: str
    level: int
    text: str


class _Suppressed(NamedTuple):
    """Number of lines that were left out, and the text of the last one."""

    lines: int
    text: str


class LimitedStreamHandler(logging.StreamHandler[TextIO]):
    """Writes records to a stream within the limits; `clock` returns monotonic seconds."""

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._clock = clock
        self._buckets: OrderedDict[_Template, TokenBucket] = OrderedDict()
        self._suppressed: dict[_Template, _Suppressed] = {}
        self._next_report = clock() + REPORT_INTERVAL

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the record, unless its template has used up its lines. Called with the handler's lock held."""
        if self._suppressed and self._clock() >= self._next_report:
            self._report()
        if record.levelno <= logging.DEBUG:
            super().emit(record)
            return
        template = _template(record)
        if self._bucket(template).take():
            super().emit(record)
            return
        if not self._suppressed:
            self._next_report = self._clock() + REPORT_INTERVAL
        before = self._suppressed.get(template)
        self._suppressed[template] = _Suppressed(1 if before is None else before.lines + 1, str(record.msg))

    def close(self) -> None:
        """Reports what was left out since the last report, and closes the handler."""
        self.acquire()
        try:
            self._report()
        finally:
            self.release()
        super().close()

    def _bucket(self, template: _Template) -> TokenBucket:
        bucket = self._buckets.get(template)
        if bucket is None:
            bucket = self._buckets[template] = TokenBucket(rate=RATE, burst=BURST, clock=self._clock)
            if len(self._buckets) > MAX_TEMPLATES:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(template)
        return bucket

    def _report(self) -> None:
        for template, (count, last) in self._suppressed.items():
            text = last if len(last) <= _MAX_TEXT else f"{last[:_MAX_TEXT]}..."
            message = "%d more lines like this were left out: %s"
            super().emit(
                logging.LogRecord(template.logger, template.level, "", 0, message, (count, text), exc_info=None)
            )
        self._suppressed.clear()
        self._next_report = self._clock() + REPORT_INTERVAL


def _template(record: logging.LogRecord) -> _Template:
    # Without arguments the values are in the text itself, and the place of the call is unknown (`logs`).
    text = str(record.msg) if record.args else _NUMBER.sub("#", str(record.msg)[:_MAX_TEXT])
    return _Template(record.name, record.levelno, text)
