"""Reader for an agent that connects networks with other nodes: it follows virtual routers, too.

They have the addresses of the nodes. Each agent derives the network slices itself, since nobody writes them to the
server.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Final

from contrail_config.objects import NetworkSlice
from contrail_config.store import Change
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.follower import DEFAULT_INTERVALS, Intervals
from contrail_config.vnc.mapping import routers
from contrail_config.vnc.network_slices import NetworkSlices
from contrail_config.vnc.reader import READ, VncReader

_READ: Final = {routers.KIND: routers.FIELDS, **READ}


class SpanningReader(VncReader):
    """`SliceStore` beside what `VncReader` does."""

    def __init__(self, client: VncClient, *, cluster: str, intervals: Intervals = DEFAULT_INTERVALS) -> None:
        super().__init__(client, cluster=cluster, intervals=intervals, fields=_READ)
        self._slices = NetworkSlices(self._cache)

    def slice_group(self, network_uuid: str) -> str:  # noqa: ARG002 - protocol
        """Returns the same group for all networks: a watch of slices costs the server nothing."""
        return ""

    @asynccontextmanager
    async def watch_slices(self, networks: Collection[str]) -> AsyncIterator[AsyncIterator[Change[NetworkSlice]]]:
        """All slices of these networks, and every change of them, until the context is left.

        Raises StoreUnavailableError if the server cannot be read in time.
        """
        await self._wait_until_synced()
        async with self._slices.watch(networks) as changes:
            yield changes

    async def close(self) -> None:
        """Ends all watches. Idempotent."""
        await super().close()
        self._slices.end()
