"""Requests that wait for a pod's list: each is one future under the name that it waits for.

Nothing polls. When a machine of a name appears, those who wait for this name look again, nobody else. A request that
ends for whatever reason takes its future along, so names that never come leave nothing behind.
"""

import asyncio

from agent_api.errors import NotReadyError


class Waiters:
    """All waiting requests, by name."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._stopped = False

    def __len__(self) -> int:
        """The number of waiting requests."""
        return sum(map(len, self._waiting.values()))

    async def woken(self, name: str) -> None:
        """Returns when something happened to the name. Raises NotReadyError once `stop` was called."""
        if self._stopped:
            raise NotReadyError("the agent is stopping")
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(name, set())
        waiting.add(news)
        try:
            await news
        finally:
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
