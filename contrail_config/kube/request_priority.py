"""Who asks the server first: what somebody waits for, before what nobody waits for.

A server that has more to do than its processors bear makes all requests wait alike, and without this half of them would
be events and statuses. So these go out one at a time while much else is under way, and some at once otherwise. The
slower the server, the fewer they are, by themselves; none waits for ever.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

AT_ONCE = 4
"""Requests under way, urgent ones included, below which more than one leisurely one may be among them."""


class RequestPriority:
    """Those of the requests of one process to one server. Belongs to one event loop."""

    def __init__(self) -> None:
        self._urgent = 0
        self._leisurely = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def urgent(self) -> AsyncIterator[None]:
        """Something that somebody waits for is under way; it waits for nothing."""
        self._urgent += 1
        try:
            yield
        finally:
            self._urgent -= 1
            self._admit()

    @asynccontextmanager
    async def leisurely(self) -> AsyncIterator[None]:
        """Waits for a turn; who waits longest has the next one."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._admit()
        try:
            await turn
            yield
        finally:
            if not turn.cancelled():
                self._leisurely -= 1
                self._admit()

    def _admit(self) -> None:
        while self._waiting and (not self._leisurely or self._urgent + self._leisurely < AT_ONCE):
            turn = self._waiting.popleft()
            if not turn.cancelled():
                self._leisurely += 1
                turn.set_result(None)
