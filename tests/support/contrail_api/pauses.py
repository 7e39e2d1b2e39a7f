"""Pauses of writes: where requests of a real server interleave, as it waits for its databases."""

import asyncio
from collections.abc import Awaitable, Callable

Pause = Callable[[], Awaitable[object]]


async def yield_once() -> None:
    """Lets other requests run."""
    await asyncio.sleep(0)


class Pauses:
    """`before_claim` is awaited between checks and claims of a write, `before_write` between claims and write."""

    def __init__(self) -> None:
        self.before_claim: Pause = yield_once
        self.before_write: Pause = yield_once

    def race(self, parties: int) -> None:
        """Has the next `parties` writes pass their checks before one of them claims or writes anything."""
        barrier, left = asyncio.Barrier(parties), parties

        async def gate() -> None:
            nonlocal left
            left -= 1
            if left >= 0:
                await barrier.wait()

        self.before_claim = gate
