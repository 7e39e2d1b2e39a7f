"""Requests that wait for the interfaces of a VirtualMachine, one future each, by the name they wait for.

There is no polling. A change of a VirtualMachine wakes only the requests that wait for its name. A request removes its
future however it ends, so names that never appear leak nothing. The number of waiting requests is limited for each
listener on its own (`WaitSlots`): any local process may wait over TCP, and must not keep the plugin from waiting.
"""

import asyncio
import contextlib
from collections.abc import Iterator

from agent_api.errors import NotReadyError, OverloadedError

MAX_WAITING_REQUESTS = 2048
"""Requests of one listener that wait at the same time; further ones are answered with 503.

A node runs at most 250 pods.
"""


class WaitSlots:
    """Bounds the waiting requests of one listener to `max_waiting`."""

    def __init__(self, max_waiting: int = MAX_WAITING_REQUESTS) -> None:
        self._max_waiting = max_waiting
        self._taken = 0

    @contextlib.contextmanager
    def take(self) -> Iterator[None]:
        """Holds a slot until the context is left. Raises OverloadedError if all are taken."""
        if self._taken >= self._max_waiting:
            raise OverloadedError(f"too many waiting requests: limit is {self._max_waiting}; retry later")
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1


class Waiters:
    """The waiting requests of all listeners by name."""

    def __init__(self) -> None:
        self._count = 0
        self._futures: dict[str, set[asyncio.Future[None]]] = {}
        self._stopped = False

    def __len__(self) -> int:
        """The number of waiting requests."""
        return self._count

    @property
    def names(self) -> frozenset[str]:
        """The names that requests wait for."""
        return frozenset(self._futures)

    async def wait(self, name: str) -> None:
        """Waits for the next change of the name. Raises NotReadyError after `stop`."""
        if self._stopped:
            raise NotReadyError("agent: stopping")
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        futures = self._futures.setdefault(name, set())
        futures.add(changed)
        self._count += 1
        try:
            await changed
        finally:
            self._count -= 1
            futures.discard(changed)
            if not futures and self._futures.get(name) is futures:
                del self._futures[name]
        if self._stopped:
            raise NotReadyError("agent: stopping")

    def wake(self, name: str) -> None:
        """Wakes all requests that wait for the name."""
        for changed in self._futures.get(name, ()):
            if not changed.done():  # a cancelled request removes its future only later
                changed.set_result(None)

    def stop(self) -> None:
        """Fails all waiting and future requests, because the agent is stopping."""
        self._stopped = True
        for name in self._futures:
            self.wake(name)
