"""Commands of the operator's machine, such as `kubectl`, that print JSON: run with a deadline, their errors as text."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TypeVar

import msgspec

CONCURRENT = 16
"""Commands that run at the same time."""

_MAX_QUOTED = 200  # characters of an error

T = TypeVar("T")


class CommandError(Exception):
    """A command did not start, did not end in time, or printed something else; the message says so."""


def kubectl_exec(client: Sequence[str], namespace: str, pod: str, container: str, *options: str) -> list[str]:
    """Returns the beginning of a command in a container; `client` and `options` are those of kubectl and of exec."""
    return ["kubectl", *client, "exec", *options, "--namespace", namespace, pod, "--container", container, "--"]


async def answer_of(command: Sequence[str], answer: type[T], *, limit: float, given: bytes = b"") -> T:
    """Runs a command for `limit` seconds at most, with `given` on its standard input; returns what it prints.

    The exit status does not count if the output is an answer. Raises CommandError.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise CommandError(f"{command[0]}: {error.strerror}") from error
    try:
        async with asyncio.timeout(limit):
            out, err = await process.communicate(given)
    except TimeoutError as error:
        raise CommandError(f"{command[0]}: timed out after {limit:g} s") from error
    finally:
        if process.returncode is None:  # timed out, or this process is interrupted
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    try:
        return msgspec.json.decode(out, type=answer)
    except msgspec.DecodeError as error:
        text = " ".join((err or out).decode(errors="replace").split())
        raise CommandError(f"{command[0]}: exit status {process.returncode}: {text[:_MAX_QUOTED]}") from error
