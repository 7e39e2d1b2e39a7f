"""Logs to stderr, one line per record, as text or JSON, with the pod, container and VMI that a record is about.

The lines of each message are limited, see `log_limit`.

The three are context variables: code that starts work on a pod sets them once with `log_context`, and every record
logged inside, in any module, carries them.
"""

import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from contrail_service.log_limit import LimitedStreamHandler

_fields: ContextVar[dict[str, str]] = ContextVar("log_fields")

FIELDS = ("pod", "container", "vmi")


@contextlib.contextmanager
def log_context(**fields: str) -> Iterator[None]:
    """Adds fields (`pod`, `container`, `vmi`) to every record logged inside, besides those of the outer context."""
    token = _fields.set({**_fields.get({}), **fields})
    try:
        yield
    finally:
        _fields.reset(token)


class TextFormatter(logging.Formatter):
    """`2026-01-31T10:00:00.123Z INFO manager.controller pod=ns/name: message`, always one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        fields = "".join(f" {name}={value}" for name, value in _fields.get({}).items())
        return f"{_time(record)} {record.levelname} {record.name}{fields}: {_one_line(_text(self, record))}"


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the fields of the context."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        line: dict[str, Any] = {"time": _time(record), "level": record.levelname, "logger": record.name}
        return json.dumps(line | _fields.get({}) | {"message": _text(self, record)}, ensure_ascii=False)


def set_up_logs(*, json_lines: bool, level: str) -> None:
    """Sends the logs of this process to stderr. `level` is a level name of `logging`, in upper or lower case."""
    handler = LimitedStreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if json_lines else TextFormatter())
    # no format shows thread, process or source line, so `logging` need not collect them (its HOWTO, "Optimization")
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001 - documented there
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def _text(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    text = record.getMessage()
    if record.exc_info:
        text = f"{text}\n{formatter.formatException(record.exc_info)}"
    return text


def _one_line(text: str) -> str:
    # a message may quote what a tenant wrote: it must not forge a record
    return text.replace("\r", "\\r").replace("\n", "\\n")
