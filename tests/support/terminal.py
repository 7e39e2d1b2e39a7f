"""A terminal on which a program shows something, and what its user sees."""

import asyncio
import os
import pty
import select
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple, TextIO

import pytest

DEADLINE = 10.0  # seconds
CLEARED = "\r\x1b[K"
"""At the end of the output: the line is empty."""


class Terminal(NamedTuple):
    """What is written to `stream` is what its user reads."""

    user: int
    stream: TextIO

    def read(self) -> str:
        """Waits for output; a thread that waited longer would keep the test from ending."""
        assert select.select([self.user], [], [], DEADLINE)[0], "nothing was written"
        return os.read(self.user, 4096).decode()

    async def shown(self, part: str) -> str:
        """Waits for a part of the output, and returns what is new."""
        text = ""
        async with asyncio.timeout(DEADLINE):
            while part not in text:
                text += await asyncio.to_thread(self.read)
        return text

    def rest(self) -> str:
        """What is new, after a text that the test writes."""
        self.stream.write("end")
        self.stream.flush()
        text = ""
        while not text.endswith("end"):
            text += self.read()
        return text.removesuffix("end")


@contextmanager
def opened_terminal() -> Iterator[Terminal]:
    """Yields a terminal, which is closed at the end."""
    user, descriptor = pty.openpty()
    with os.fdopen(descriptor, "w") as stream:
        yield Terminal(user, stream)
    os.close(user)


@contextmanager
def terminal_of(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """Yields a terminal as standard error of the module, for which each command counts as slow at once."""
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
    with opened_terminal() as terminal:
        monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=terminal.stream))
        yield terminal


@asynccontextmanager
async def cleared_after(
    terminal: Terminal, command: asyncio.Task[Any], release: Callable[[], object]
) -> AsyncIterator[None]:
    """Ends a running command with the block, by its release, and checks that the line is gone then."""
    try:
        yield
    finally:
        release()
        await command
    assert terminal.rest().endswith(CLEARED)
