"""`contrailctl` run in the test's process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from contrailctl.cli import main


class CommandOutcome(NamedTuple):
    """Exit status and output of a command."""

    status: int
    out: str
    err: str


Run = Callable[..., Awaitable[CommandOutcome]]


async def run_contrailctl(*argv: str) -> int:
    """Runs the command in a thread, so that servers in the test's event loop can answer. Returns the exit status."""

    def run() -> int:
        try:
            return main(list(argv))
        except SystemExit as end:  # argparse calls sys.exit
            return int(end.code or 0)

    return await asyncio.to_thread(run)
