"""Commands in process groups of their own, so that what they start can be ended with them."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping


async def start(*command: str, environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    """Starts a command, whose output is read through pipes. Raises OSError.

    If it is cancelled it waits for the start and ends all: asyncio would end the command, not what that has started.
    """
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await kill(await starting)
        raise


async def kill(process: asyncio.subprocess.Process) -> None:
    """Ends a command and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
