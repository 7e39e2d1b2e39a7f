"""Reader of the virtual machines of one cluster, for an agent: it writes nothing.

It starts whatever the state of the server: a watch waits for it.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from contrail_config.objects import VirtualMachine
from contrail_config.store import Change, WatchStart
from contrail_config.vnc.cache import FIELDS, Cache
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.follower import DEFAULT_INTERVALS, Follower, Intervals
from contrail_config.vnc.mapping import machines

READ: Final = {machines.KIND: FIELDS[machines.KIND]}
"""Types that are read, and their fields."""


class VncReader:
    """Follows virtual machines from the first watch until `close`."""

    def __init__(
        self,
        client: VncClient,
        *,
        cluster: str,
        intervals: Intervals = DEFAULT_INTERVALS,
        fields: Mapping[str, Sequence[str]] = READ,
    ) -> None:
        self._cache = Cache(cluster)
        self._follower = Follower(client, self._cache, intervals, fields=fields)

    @asynccontextmanager
    async def watch_virtual_machines(
        self, *, node: str | None = None, include_pending: bool = False
    ) -> AsyncIterator[AsyncIterator[Change[VirtualMachine]]]:
        """All virtual machines (of one node), and every change, once and in order, until the context is left.

        Raises StoreUnavailableError if the server cannot be read in time.
        """

        def sees(machine: VirtualMachine) -> bool:
            return node in (None, machine.node) and (include_pending or not machine.is_pending)

        await self._wait_until_synced()
        async with self._cache.machines.watch(start=WatchStart.LIST, sees=sees) as changes:
            yield changes

    def problems(self) -> list[str]:
        """Returns why what was read may be out of date; empty if it is not."""
        return [] if self._follower.problem is None else [self._follower.problem]

    async def close(self) -> None:
        """Ends all watches. Idempotent."""
        await self._follower.stop()
        self._cache.machines.end()

    async def _wait_until_synced(self) -> None:
        """Begins to follow, and waits for the first state. Raises StoreUnavailableError."""
        self._follower.start()
        await self._follower.wait_until_synced()
