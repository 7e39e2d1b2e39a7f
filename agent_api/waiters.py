"""Requests that wait for a pod's list: each is one future under the name that it waits for.

Nothing polls, and no more wait at once than the agent bears. When a machine of a name appears, those who wait for this
name look again, nobody else. A request that ends for whatever reason takes its future along, so names that never come
leave nothing behind.
"""

import asyncio

from agent_api.errors import NotReadyError, OverloadedError

MOST_WAITING = 2048
"""Requests that wait at once; a further one is answered with 503. A node runs 250 pods."""


class Waiters:
    """All waiting requests, by name; no more than `most`."""

    def __init__(self, *, most: int = MOST_WAITING) -> None:
        self._most = most
        self._number = 0
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._stopped = False

    def __len__(self) -> int:
        """The number of waiting requests."""
        return self._number

    async def woken(self, name: str) -> None:
        """Returns when something happened to the name. Raises OverloadedError, and NotReadyError after `stop`."""
        if self._stopped:
            raise NotReadyError("the agent is stopping")
        if self._number >= self._most:
            raise OverloadedError(f"{self._number} requests wait already; try again")
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(name, set())
        waiting.add(news)
        self._number += 1
        try:
            await news
        finally:
            self._number -= 1
            waiting.discard(news)
            if not waiting and self._waiting.get(name) is waiting:
                del self._waiting[name]
        if self._stopped:
            raise NotReadyError("the agent is stopping")

    def wake(self, name: str) -> None:
        """Wakes those who wait for the name."""
        for news in self._waiting.get(name, ()):
            if not news.done():
                news.set_result(None)

    def stop(self) -> None:
        """Wakes everybody with an error: nothing will come any more."""
        self._stopped = True
        for name in self._waiting:
            self.wake(name)
