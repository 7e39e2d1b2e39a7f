"""Watches this node's VirtualMachines in the config store and applies the changes to the index.

A watch that ends, by an error or because the store was closed, is restarted with exponential backoff and jitter, so
that the agents of a cluster do not reconnect all at once. What was deleted during the interruption is removed from the
index at the end of the new list.
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

INITIAL_BACKOFF = 0.2  # seconds
MAX_BACKOFF = 10.0


class WatchedStore(Protocol):
    """The part of a config store that an agent uses."""

    def watch_virtual_machines(
        self, *, node: str | None = None, include_pending: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualMachine]]]:
        """See `contrail_config.store.Store.watch_virtual_machines`."""


class VirtualMachineWatch:
    """Keeps the index in sync with the store; `problem` says why it is out of date, None if it is in sync."""

    def __init__(
        self, store: WatchedStore, *, node: str, index: VirtualMachineIndex, initial_backoff: float = INITIAL_BACKOFF
    ) -> None:
        self._store = store
        self._node = node
        self._index = index
        self._backoff = Backoff(first=initial_backoff, longest=MAX_BACKOFF)
        self.problem: str | None = "virtual machines: not listed yet"

    async def run(self) -> None:
        """Watches until cancelled."""
        while True:
            await self._watch_once()
            await asyncio.sleep(self._backoff.next_pause())

    async def _watch_once(self) -> None:
        try:
            await self._watch()
            self.problem = "store: watch closed"
        except StoreError as error:
            self.problem = f"store: watch failed: {error}"
        log.warning("%s", self.problem)

    async def _watch(self) -> None:
        self._index.begin_list()
        async with self._store.watch_virtual_machines(node=self._node, include_pending=True) as changes:
            async for change in changes:
                self._index.apply(change)
                if change.type is ChangeType.SYNCED:
                    self._on_synced()

    def _on_synced(self) -> None:
        # Only a complete list counts as a success: a store that fails during each list must be backed off from.
        self.problem = None
        self._backoff.reset()
        log.info("node %s: %d virtual machines listed", self._node, len(self._index))
