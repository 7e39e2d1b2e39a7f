"""Logs to stderr, one line each, as text or JSON, with the pod, container and VMI that a line is about.

The three are context variables: whoever begins work on a pod says so once with `log_about`, and every line that is
written meanwhile, in whatever module, bears them.
"""

import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

_about: ContextVar[dict[str, str]] = ContextVar("log_about")

FIELDS = ("pod", "container", "vmi")


@contextlib.contextmanager
def log_about(**fields: str) -> Iterator[None]:
    """Every line written inside bears these fields (`pod`, `container`, `vmi`) beside those of the outer context."""
    token = _about.set({**_about.get({}), **fields})
    try:
        yield
    finally:
        _about.reset(token)


class TextFormatter(logging.Formatter):
    """`2026-01-31T10:00:00.123Z INFO manager.controller pod=ns/name: message`, always one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        about = "".join(f" {name}={value}" for name, value in _about.get({}).items())
        return f"{_time(record)} {record.levelname} {record.name}{about}: {_one_line(_text(self, record))}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the fields that are known."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        line: dict[str, Any] = {"time": _time(record), "level": record.levelname, "logger": record.name}
        return json.dumps(line | _about.get({}) | {"message": _text(self, record)}, ensure_ascii=False)


def set_up_logs(*, json_lines: bool, level: str) -> None:
    """Sends the logs of this process to stderr. `level` is a name that `logging` knows, in any case."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if json_lines else TextFormatter())
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # no line tells of them,
    logging._srcfile = None  # noqa: SLF001 - nor of the place in the code; the way that the guide of `logging` gives
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
    return text.replace("\r", "\\r").replace("\n", "\\n")
