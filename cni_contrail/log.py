"""Log: one line per event to standard error or a file, with container, pod and VMI in each line.

Not `logging`, whose import takes as long as half of an ADD's kernel work. A line is one write, so lines of processes
that share a file do not interleave. Logging never fails a call: lines that cannot be written to the file go to standard
error, after one warning with the reason.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping

from cni_contrail.quoting import cut

LEVELS = ("debug", "info", "warning", "error")

_STANDARD_ERROR = 2
_MAX_REPORTED = 16  # files: a network configuration may name any file, and the daemon lives long

# A message may quote what a tenant wrote: in a terminal, control characters would forge lines.
_ESCAPED = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {9: "\\t", 10: "\\n", 13: "\\r"}

_NO_CONTEXT: Mapping[str, str] = {}

_reported: dict[str, object] = {}  # files with a warning on standard error; the value identifies its writer


class Log:
    """Writes lines of `level` and above; `bind` returns one with more context in its lines."""

    def __init__(
        self,
        path: str = "",
        level: str = "info",
        *,
        json_lines: bool = False,
        context: Mapping[str, str] = _NO_CONTEXT,
    ) -> None:
        self._path = path
        self._level = level
        self._json_lines = json_lines
        self._context = context

    def bind(self, **context: str) -> Log:
        """Returns a log that adds `key=value` of each argument to its lines, cut; empty values are omitted."""
        added = {key: cut(value) for key, value in context.items() if value}
        return Log(self._path, self._level, json_lines=self._json_lines, context={**self._context, **added})

    def debug(self, message: str) -> None:
        """Logs a single step of a call."""
        self._write("debug", message)

    def info(self, message: str) -> None:
        """Logs the outcome of a call."""
        self._write("info", message)

    def warning(self, message: str) -> None:
        """Logs a problem that did not fail the call."""
        self._write("warning", message)

    def error(self, message: str) -> None:
        """Logs why a call failed."""
        self._write("error", message)

    def _write(self, level: str, message: str) -> None:
        if LEVELS.index(level) < LEVELS.index(self._level):
            return
        line = self._line(level, message)
        if self._path:
            try:
                _append(self._path, line)
            except OSError as error:
                self._report_once(error)
            else:
                return
        _write_to_stderr(line)

    def _line(self, level: str, message: str) -> bytes:
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
        form = _json_line if self._json_lines else _text_line
        return (form(stamp, level.upper(), self._context, message) + "\n").encode(errors="backslashreplace")

    def _report_once(self, error: OSError) -> None:
        mine = object()
        # `setdefault` is atomic: of several threads exactly one writes the warning.
        if len(_reported) < _MAX_REPORTED and _reported.setdefault(self._path, mine) is mine:
            why = f"log-file {self._path}: {error.strerror}: logging to standard error instead"
            _write_to_stderr(self._line("warning", why))


def _append(path: str, line: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _write_to_stderr(line: bytes) -> None:
    try:
        os.write(_STANDARD_ERROR, line)
    except OSError:
        return  # standard error is closed or full: there is no other place


def _text_line(stamp: str, level: str, context: Mapping[str, str], message: str) -> str:
    words = (f"{key}={value}" for key, value in context.items())
    return " ".join([stamp, level, *words, message]).translate(_ESCAPED)


def _json_line(stamp: str, level: str, context: Mapping[str, str], message: str) -> str:
    return json.dumps({"time": stamp, "level": level, **context, "message": message})
