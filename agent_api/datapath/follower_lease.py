"""Lease of the follower: one process at a time programs this node's kernel, and learns what it should have.

The holder is the follower that claimed first. Its lease lasts as long as one of its requests waits here, and
`LEASE_SECONDS` after its last one. A waiting request whose client has gone ends it at once, so the successor of a
killed process usually takes over without delay.

Not promised: that a holder that was suspended for longer than its lease does not finish the round that it had begun.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from agent_api.errors import ConflictError
from agent_api.waiters import Waiters

LEASE_SECONDS = 30.0
"""Longer than a round that programs the kernel, and than the longest pause of a follower that retries."""

_CHANGED = "lease"  # what the waiters wait for


class FollowerLease:
    """`clock` returns monotonic seconds; `lease` is in seconds."""

    def __init__(
        self, waiters: Waiters, *, lease: float = LEASE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._waiters = waiters
        self._lease = lease
        self._clock = clock
        self._holder: str | None = None
        self._requests = 0  # of the holder, that wait
        self._expires = 0.0

    @property
    def holder(self) -> str | None:
        """The follower that holds the lease."""
        return self._holder if self._requests or self._clock() < self._expires else None

    def claim(self, follower: str) -> None:
        """Takes or extends the lease. Raises ConflictError, which names the holder, if another follower has it."""
        if self.holder not in (None, follower):
            raise ConflictError(f"{self._holder} programs the datapath of this node")
        self._holder = follower
        self._expires = self._clock() + self._lease

    @contextlib.asynccontextmanager
    async def held(self, follower: str, *, wait: float) -> AsyncIterator[None]:
        """Holds the lease while a request of the follower waits; waits up to `wait` seconds for its turn.

        Raises ConflictError if another follower keeps it.
        """
        await self._until_free(follower, wait)
        self.claim(follower)
        self._requests += 1
        remaining = self._lease
        try:
            yield
        except asyncio.CancelledError:  # the client has hung up
            remaining = 0.0
            raise
        finally:
            self._requests -= 1
            self._expires = self._clock() + remaining
            self._waiters.wake(_CHANGED)

    async def _until_free(self, follower: str, wait: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                while self.holder not in (None, follower):
                    await self._until_changed_or_expired()

    async def _until_changed_or_expired(self) -> None:
        remaining = None if self._requests else max(0.0, self._expires - self._clock())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(remaining):
                await self._waiters.wait(_CHANGED)
