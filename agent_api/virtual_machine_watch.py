"""Follows the machines of this node in the config store, for ever.

A watch that ends, by an error or because the store was closed, is begun anew after a pause that doubles up to a cap
and is jittered, so that the agents of a cluster do not all come back at one moment. What disappeared meanwhile goes
with the end of the new list.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from agent_api.virtual_machine_index import VirtualMachineIndex
from contrail_config.errors import StoreError
from contrail_config.kube.backoff import Backoff
from contrail_config.objects import VirtualMachine
from contrail_config.store import Change, ChangeType

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0


class WatchedStore(Protocol):
    """All that an agent asks of a config store."""

    def watch_virtual_machines(
        self, *, node: str | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualMachine]]]:
        """As `contrail_config.store.Store.watch_virtual_machines`."""


class VirtualMachineWatch:
    """Keeps `machines` as the store has them; `problem` says why it is not up to date, None if it is."""

    def __init__(
        self, store: WatchedStore, *, node: str, machines: VirtualMachineIndex, first_pause: float = FIRST_PAUSE
    ) -> None:
        self._store = store
        self._node = node
        self._machines = machines
        self._backoff = Backoff(first=2 * first_pause, longest=LONGEST_PAUSE)
        self.problem: str | None = "the machines are not listed yet"

    async def follow(self) -> None:
        """Follows until it is cancelled."""
        while True:
            await self._follow_once()
            await asyncio.sleep(self._backoff.next_pause())

    async def _follow_once(self) -> None:
        try:
            await self._watch()
            self.problem = "the store ended the watch"
        except StoreError as error:
            self.problem = f"the store cannot be watched: {error}"
        log.warning("%s", self.problem)

    async def _watch(self) -> None:
        self._machines.begin_list()
        async with self._store.watch_virtual_machines(node=self._node) as changes:
            async for change in changes:
                self._machines.take(change)
                if change.type is ChangeType.SYNCED:
                    self._synced()

    def _synced(self) -> None:
        self.problem = None
        self._backoff.reset()
        log.info("%d machines of node %s listed", len(self._machines), self._node)
