"""Progress: shown on a terminal after a while, and removed at the end; never in a pipe or a file."""

import asyncio
import io
import os
import pty
from collections.abc import Iterator
from typing import TextIO

import pytest

from contrailctl.progress import Progress

DEADLINE = 10.0


class Terminal:
    """A terminal: what is written to `stream`, and what its user sees."""

    def __init__(self) -> None:
        self._user, descriptor = pty.openpty()
        self.stream: TextIO = os.fdopen(descriptor, "w")

    def read(self) -> str:
        """Waits for output."""
        return os.read(self._user, 4096).decode()

    def close(self) -> None:
        self.stream.close()
        os.close(self._user)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    terminal.close()


async def test_the_stage_is_shown_and_removed_at_the_end(terminal: Terminal) -> None:
    async with Progress(terminal.stream, quiet=0.0) as progress:
        progress.stage("reading \x1b[2Jnodes")
        await shown(terminal, "reading \\x1b[2Jnodes (")
        progress.stage("reading pods")
        text = await shown(terminal, "reading pods (")
    assert "\x1b[2J" not in text
    terminal.stream.write("end")
    terminal.stream.flush()
    assert (await shown(terminal, "end")).endswith("\r\x1b[Kend")


async def shown(terminal: Terminal, part: str) -> str:
    """Waits for a part of the output, and returns what is new."""
    text = ""
    async with asyncio.timeout(DEADLINE):
        while part not in text:
            text += await asyncio.to_thread(terminal.read)
    return text


async def test_nothing_is_shown_of_a_short_command(terminal: Terminal) -> None:
    async with Progress(terminal.stream) as progress:
        progress.stage("reading nodes")
    terminal.stream.write("end")
    terminal.stream.flush()
    assert terminal.read() == "end"


async def test_a_pipe_gets_nothing() -> None:
    pipe = io.StringIO()
    async with Progress(pipe, quiet=0.0) as progress:
        await asyncio.sleep(0)
        progress.stage("reading nodes")
        await asyncio.sleep(0)
    assert pipe.getvalue() == ""
