"""Removal at the end of the live check, also after an error or an interrupt.

An error leaves no result that could name what is left, so this is printed on standard error.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Sequence

from contrailctl.check.live.run import RUN_LABEL
from contrailctl.check.live.temporary_pods import TemporaryPods
from contrailctl.progress import CLEAR
from contrailctl.table import printable

BY_HAND = f"kubectl delete pods,namespaces --all-namespaces --selector {RUN_LABEL}"
"""Removes what any run has left."""


@contextlib.asynccontextmanager
async def removed_at_end(pods: TemporaryPods, *, seconds: float) -> AsyncIterator[list[str]]:
    """Removes the pods at the end; the list has what is left then, and why."""
    left: list[str] = []
    try:
        yield left
    except BaseException:
        _print_left(await _remove(pods, seconds))
        raise
    left += await _remove(pods, seconds)


async def _remove(pods: TemporaryPods, seconds: float) -> list[str]:
    try:
        return await pods.remove(seconds=seconds)
    except asyncio.CancelledError:
        _print_left([pods.left("the removal was interrupted")])
        raise


def _print_left(left: Sequence[str]) -> None:
    if not left:
        return
    start = CLEAR if sys.stderr.isatty() else ""  # where the progress may be
    lines = [*(f"not removed: {printable(each)}" for each in left), f"by hand: {BY_HAND}"]
    sys.stderr.write("".join(f"{start}contrailctl: {line}\n" for line in lines))
    sys.stderr.flush()
