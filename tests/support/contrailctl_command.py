"""Runs `contrailctl` inside a test."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from contrailctl.cli import main


class CommandOutcome(NamedTuple):
    """How a command ended and what it wrote."""

    status: int
    out: str
    err: str


Run = Callable[..., Awaitable[CommandOutcome]]


async def run_contrailctl(*argv: str) -> int:
    """Runs the command in a thread, so that servers of the test's loop can answer, and returns its exit status."""

    def run() -> int:
        try:
            return main(list(argv))
        except SystemExit as end:  # argparse ends the process
            return int(end.code or 0)

    return await asyncio.to_thread(run)
