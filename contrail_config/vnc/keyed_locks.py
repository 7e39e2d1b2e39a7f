"""Locks by key: one writer per object, and any number for different ones."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary


class KeyedLocks:
    """A lock exists while somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def held(self, keys: Collection[str]) -> AsyncIterator[None]:
        """Holds the locks of all keys, taken in one order, so that no two callers wait for each other."""
        async with AsyncExitStack() as stack:
            for key in sorted(set(keys)):
                lock = self._locks.get(key)
                if lock is None:
                    lock = self._locks[key] = asyncio.Lock()
                await stack.enter_async_context(lock)
            yield
