"""Deletions and appearances of virtual machines in a store, told by the store's own watch."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

from contrail_config.objects import VirtualMachine
from contrail_config.store import Change, ChangeType, Store, WatchStart
from manager.deletions import Deletion, Removed


class StoreDeletions:
    """Watches the virtual machines of all nodes.

    `is_gone` says whether the pod of a virtual machine is known to be gone. `on_appeared` is called with each virtual
    machine that somebody wrote, the manager itself included.
    """

    def __init__(
        self,
        store: Store,
        *,
        is_gone: Callable[[VirtualMachine], bool],
        on_appeared: Callable[[VirtualMachine], None],
    ) -> None:
        self._store = store
        self._is_gone = is_gone
        self._on_appeared = on_appeared

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[Deletion]]:
        """Yields all deletions from now on, until the context is left."""
        async with (
            self._store.watch_virtual_machines(start=WatchStart.NOW) as changes,
            aclosing(self._follow(changes)) as deletions,
        ):
            yield deletions

    async def _follow(self, changes: AsyncIterator[Change[VirtualMachine]]) -> AsyncGenerator[Deletion, None]:
        async for change in changes:
            if change.object is None:
                continue
            if change.type is ChangeType.ADDED:
                self._on_appeared(change.object)
            elif change.type is ChangeType.DELETED and not self._is_gone(change.object):
                yield Removed(change.object.uuid, change.object)
