"""Log lines: one per event, to standard error or a file, with container, pod and VMI on each.

Made by hand, since importing `logging` takes as long as half of an ADD's kernel work. A line is one write, so lines
of processes that share a file do not mix. Logging never makes a call fail: what a file does not take goes to standard
error, and so does once why it does not.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping

LEVELS = ("debug", "info", "warning", "error")

_STANDARD_ERROR = 2
_MOST_TOLD = 16  # files: a network configuration may name any

_told: dict[str, object] = {}  # files that standard error was told of, each with a token of who told it


class Log:
    """Writes lines of `level` and above; `bind` makes one that says more about whom its lines are about."""

    def __init__(self, path: str = "", level: str = "info", *, json_lines: bool = False) -> None:
        self._path = path
        self._level = level
        self._form = _json_line if json_lines else _text_line
        self._context: Mapping[str, str] = {}

    def bind(self, **context: str) -> Log:
        """The same journal, with `key=value` of each added to its lines; what is empty is left out."""
        bound = Log(self._path, self._level)
        bound._form = self._form
        bound._context = {**self._context, **{key: value for key, value in context.items() if value}}
        return bound

    def debug(self, message: str) -> None:
        """For those who follow a call step by step."""
        self._write("debug", message)

    def info(self, message: str) -> None:
        """What a call did."""
        self._write("info", message)

    def warning(self, message: str) -> None:
        """What was not as it should be, and the call went on."""
        self._write("warning", message)

    def error(self, message: str) -> None:
        """Why a call failed."""
        self._write("error", message)

    def _write(self, level: str, message: str) -> None:
        if LEVELS.index(level) < LEVELS.index(self._level):
            return
        line = self._line(level, message)
        if self._path:
            try:
                _append(self._path, line)
            except OSError as error:
                self._tell_once(error)
            else:
                return
        _tell(line)

    def _line(self, level: str, message: str) -> bytes:
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
        return (self._form(stamp, level.upper(), self._context, message) + "\n").encode(errors="backslashreplace")

    def _tell_once(self, error: OSError) -> None:
        mine = object()
        if len(_told) < _MOST_TOLD and _told.setdefault(self._path, mine) is mine:  # one of several threads
            why = f"log-file {self._path}: {error.strerror}: lines go to standard error"
            _tell(self._line("warning", why))


def _append(path: str, line: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _tell(line: bytes) -> None:
    try:
        os.write(_STANDARD_ERROR, line)
    except OSError:
        return  # nobody can be told


def _text_line(stamp: str, level: str, context: Mapping[str, str], message: str) -> str:
    words = (f"{key}={value}" for key, value in context.items())
    return " ".join([stamp, level, *words, message.replace("\n", "\\n")])


def _json_line(stamp: str, level: str, context: Mapping[str, str], message: str) -> str:
    return json.dumps({"time": stamp, "level": level, **context, "message": message})
