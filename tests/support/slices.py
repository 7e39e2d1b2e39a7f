"""A store of network slices in memory, for tests of agents."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from contrail_config.errors import StoreUnavailableError
from contrail_config.objects import NetworkSlice
from contrail_config.store import Change, ChangeType

Changes = asyncio.Queue[Change[NetworkSlice] | None]


class SlicesInMemory:
    """`SliceStore` of two groups. `watched` are the networks of each running watch.

    Lists do not end while `is_hung`; watches fail while `is_broken`. `retried` are problems that end no watch.
    """

    def __init__(self) -> None:
        self.is_hung = False
        self.is_broken = False
        self.retried: list[str] = []
        self._slices: dict[tuple[str, str], NetworkSlice] = {}
        self._watches: dict[Changes, frozenset[str]] = {}

    @property
    def watched(self) -> list[frozenset[str]]:
        return list(self._watches.values())

    def put(self, item: NetworkSlice) -> None:
        self._slices[item.network_uuid, item.node] = item
        self._send(ChangeType.MODIFIED, item)

    def remove(self, item: NetworkSlice) -> None:
        del self._slices[item.network_uuid, item.node]
        self._send(ChangeType.DELETED, item)

    def end_lists(self) -> None:
        """Ends the lists that were hung."""
        self.is_hung = False
        for queue in self._watches:
            queue.put_nowait(Change(ChangeType.SYNCED, None))

    def cut(self) -> None:
        """Ends all watches."""
        for queue in self._watches:
            queue.put_nowait(None)

    def problems(self) -> list[str]:
        return list(self.retried)

    def slice_group(self, network_uuid: str) -> str:
        return network_uuid[-1]

    @asynccontextmanager
    async def watch_slices(self, networks: Collection[str]) -> AsyncIterator[AsyncIterator[Change[NetworkSlice]]]:
        if self.is_broken:
            raise StoreUnavailableError("broken on purpose")
        queue: Changes = asyncio.Queue()
        for item in self._slices.values():
            if item.network_uuid in networks:
                queue.put_nowait(Change(ChangeType.ADDED, item))
        if not self.is_hung:
            queue.put_nowait(Change(ChangeType.SYNCED, None))
        self._watches[queue] = frozenset(networks)
        try:
            yield _read(queue)
        finally:
            del self._watches[queue]

    def _send(self, kind: ChangeType, item: NetworkSlice) -> None:
        for queue, networks in self._watches.items():
            if item.network_uuid in networks:
                queue.put_nowait(Change(kind, item))


async def _read(queue: Changes) -> AsyncIterator[Change[NetworkSlice]]:
    while (change := await queue.get()) is not None:
        yield change
