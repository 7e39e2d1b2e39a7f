"""Commands in process groups of their own, so that their child processes are killed with them."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping


async def start(*command: str, environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    """Starts a command with pipes for its output. Raises OSError.

    On cancellation it waits for the start and kills the process group: asyncio would kill only the command itself.
    """
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # also a process group, with the command's pid
        )
    )
    try:
        return await asyncio.shield(starting)  # the process may exist before the transport that would kill it
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await kill(await starting)
        raise


async def kill(process: asyncio.subprocess.Process) -> None:
    """Kills the process group of a command and reaps the command."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
