"""A terminal on which a program shows something, and what its user sees."""

import asyncio
import os
import pty
import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, TextIO

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
