"""Progress of a command on a terminal: what it does now, on standard error, once it has taken longer than 2 s."""

import asyncio
import sys
from types import TracebackType
from typing import Self, TextIO

from contrailctl.table import printable

QUIET_SECONDS = 2.0
"""Of a command before the first line."""

INTERVAL = 1.0
"""Seconds between two lines."""

CLEAR = "\r\x1b[K"
"""Removes the line."""


class Progress:
    """An asynchronous context manager. One line, which is written again each second and removed at the end.

    Nothing is written to what is no terminal: a log or a pipe would get each line.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._stage = ""
        self._is_shown = False
        self._timer: asyncio.TimerHandle | None = None
        self._began = 0.0

    def stage(self, text: str) -> None:
        """Says what the command does from now on."""
        self._stage = text
        if self._is_shown:
            self._write()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        if self._stream.isatty():
            self._timer = loop.call_later(QUIET_SECONDS, self._show)
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._is_shown:
            self._stream.write(CLEAR)
            self._stream.flush()

    def _show(self) -> None:
        self._is_shown = True
        self._write()
        self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._show)

    def _write(self) -> None:
        seconds = asyncio.get_running_loop().time() - self._began
        self._stream.write(f"{CLEAR}{printable(self._stage)} ({seconds:.0f} s)")
        self._stream.flush()
