"""Pending reporter: stores why a pod has no interfaces yet, so that the agent of its node can answer it to the plugin.

The reason is a pending virtual machine, next to those of the node, which the agent watches anyway. It is best effort
and never in the way of an assignment: it is written in the background, at a bounded rate and with low priority, and
only if the pod still waits after a delay, since most networks appear at once. A failed write is logged and retried.

The store lets a complete virtual machine replace the pending one of its uuid, and never the other way round. So
nothing is deleted when a pod is assigned, and a write in progress at that moment has no effect.
"""

import asyncio
from collections.abc import Awaitable
from typing import NamedTuple, Protocol

from contrail_config.errors import StoreError
from contrail_config.kube.work_queue import WorkQueue
from contrail_config.objects import VirtualMachine

DELAY = 1.0
"""Seconds that a pod waits before the reason is written; an ADD waits for several seconds."""

_CONCURRENCY = 4
_PAUSE = 0.1
"""Seconds between two writes of one worker: at most 40 pods per second."""


class PendingStore(Protocol):
    """The part of a store that the reporter uses."""

    async def put_pending(self, virtual_machine: VirtualMachine) -> None:
        """See `contrail_config.store.Store.put_pending`."""

    async def delete_pending(self, virtual_machine: VirtualMachine) -> None:
        """See `contrail_config.store.Store.delete_pending`."""


class _Written(NamedTuple):
    """What the store has, or may have while the outcome of a write is unknown."""

    pending: VirtualMachine
    is_confirmed: bool = True


class PendingReporter:
    """Reasons by pod key (`namespace/name`). Belongs to one event loop."""

    def __init__(self, store: PendingStore) -> None:
        self._store = store
        self._wanted: dict[str, VirtualMachine] = {}
        self._written: dict[str, dict[str, _Written]] = {}  # by key and uuid, since a pod may be recreated
        self.queue = WorkQueue(self._write, limit=_CONCURRENCY, transient=StoreError)

    def load(self, key: str, pending: VirtualMachine) -> None:
        """Records what another manager has written."""
        self._written.setdefault(key, {}).setdefault(pending.uuid, _Written(pending))

    def report(self, key: str, pending: VirtualMachine) -> None:
        """Writes the pending virtual machine after the delay, in place of those written for the key."""
        others = self._written.get(key, {}).keys() - {pending.uuid}
        if others or self._wanted.get(key) != pending:
            self._wanted[key] = pending
            self.queue.add_after(key, DELAY)

    def withdraw(self, key: str, *, assigned: str | None = None) -> None:
        """Deletes what is written for the key; the virtual machine of uuid `assigned` is replaced already."""
        self._wanted.pop(key, None)
        written = self._written.get(key, {})
        if assigned is not None:
            written.pop(assigned, None)
        if written:
            self.queue.add(key)
        else:
            self._written.pop(key, None)

    async def _write(self, key: str) -> None:
        """Makes the store have what is wanted."""
        wanted, written = self._wanted.get(key), self._written.setdefault(key, {})
        for uuid, former in list(written.items()):
            if wanted is None or uuid != wanted.uuid:
                await self._paced(self._store.delete_pending(former.pending))
                written.pop(uuid, None)
        if wanted is not None and written.get(wanted.uuid) != _Written(wanted):
            written[wanted.uuid] = _Written(wanted, is_confirmed=False)
            await self._paced(self._store.put_pending(wanted))
            if wanted.uuid in written:  # not if the pod was assigned meanwhile
                written[wanted.uuid] = _Written(wanted)
        if not written:
            self._written.pop(key, None)

    async def _paced(self, write: Awaitable[None]) -> None:
        try:
            await write
        finally:
            await asyncio.sleep(_PAUSE)
