"""Request priority: writes that nobody waits for yield to all other requests.

An overloaded server slows down all requests alike, and half of them would be events and status updates. So while many
requests are in flight, low-priority ones are sent one at a time. This adapts to the server's speed and starves none.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

BUSY = 4
"""Requests in flight, of both priorities, from which on only one of them is of low priority."""


class RequestPriority:
    """Admission of the requests of one process to one server. Belongs to one event loop."""

    def __init__(self) -> None:
        self._high = 0
        self._low = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def high(self) -> AsyncIterator[None]:
        """Admits a request of high priority at once, and counts it while it is in flight."""
        self._high += 1
        try:
            yield
        finally:
            self._high -= 1
            self._admit()

    @asynccontextmanager
    async def low(self) -> AsyncIterator[None]:
        """Waits until a request of low priority is admitted, first come, first served."""
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(admitted)
        self._admit()
        try:
            await admitted
            yield
        finally:
            # a waiter may be cancelled after its future was set and before it ran: then it was admitted, and is counted
            if not admitted.cancelled():
                self._low -= 1
                self._admit()

    def _admit(self) -> None:
        while self._waiting and (not self._low or self._high + self._low < BUSY):
            admitted = self._waiting.popleft()
            if not admitted.cancelled():  # cancelled waiters stay in the deque until it is their turn
                self._low += 1
                admitted.set_result(None)
