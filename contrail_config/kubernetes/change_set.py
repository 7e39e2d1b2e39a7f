"""Change set: the edits of one operation on the allocation cache, for rollback.

An operation is planned again if another writer changed a block first, so that edits were not written. Edits of its
earlier plans that were written stay in the change set, so that a later rejection undoes them too.
"""

from collections.abc import Collection
from typing import NamedTuple

from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.blocks import AddressEntry, AddressKey, BlockKey, Hold


class _Edit(NamedTuple):
    key: AddressKey
    before: AddressEntry | None
    after: AddressEntry | None


class ChangeSet:
    """The edits of one operation. `blocks` must be written for it to hold. Times are seconds since the epoch."""

    def __init__(self, cache: AllocationCache) -> None:
        self.cache = cache
        self.blocks: set[BlockKey] = set()
        self.now = 0.0
        self._edits: list[_Edit] = []

    def begin(self, now: float) -> None:
        """Starts another plan of the operation."""
        self.now = now
        self.blocks.clear()

    def require(self, key: AddressKey) -> None:
        """Requires that the block of the address is written, whoever edited it."""
        self.blocks.add(key.block)

    def allocate(self, key: AddressKey, owner: str, *, node: str | None) -> None:
        """Allocates the address to the owner. `node` is that of the owner if blocks of the network belong to nodes.

        A block that has no entries belongs to the node from then on. In the block of another node, the address is
        marked as borrowed.
        """
        before = self.cache.entry(key)
        self._record(key, before, self.cache.allocate(key, owner, node=node, at=self.now))

    def release(self, key: AddressKey, *, hold: float, node: str | None = None) -> None:
        """Releases the address and holds it for `hold` seconds, or for less if it is held already. Idempotent.

        `node`: where it may still be in use, if that is known.
        Nothing is released in an invalid block: once that is recovered, only what virtual machines have is allocated.
        """
        entry = self.cache.entry(key)
        if entry is None or self.cache.is_sealed(key.block):
            return
        until = self.now + hold
        if entry.hold is not None:
            until, node = min(entry.hold.until, until), entry.node
        held = AddressEntry(entry.owner, Hold(self.now, until), node, entry.unknown)
        self._put(key, held if until > self.now else None)

    def hold(self, key: AddressKey, owner: str, *, seconds: float) -> None:
        """Holds a free address as if this owner had released it."""
        self._put(key, AddressEntry(owner, Hold(self.now, self.now + seconds)))

    def discard(self, blocks: Collection[BlockKey]) -> None:
        """Drops the edits of blocks that could not be written: they no longer need to be undone."""
        self._edits = [edit for edit in self._edits if edit.key.block not in blocks]

    def undo(self) -> None:
        """Undoes all edits that nobody has edited since."""
        for key, before, after in reversed(self._edits):
            if self.cache.entry(key) == after:  # else another operation depends on the current entry
                self.cache.put(key, before)
                self.require(key)
        self._edits.clear()

    def _put(self, key: AddressKey, entry: AddressEntry | None) -> None:
        before = self.cache.entry(key)
        self.cache.put(key, entry)
        self._record(key, before, entry)

    def _record(self, key: AddressKey, before: AddressEntry | None, after: AddressEntry | None) -> None:
        self._edits.append(_Edit(key, before, after))
        self.require(key)
