"""What one operation does to the ledger, so that it can be taken back.

An operation may have to be planned several times, since what it edited could not be saved: somebody else wrote the
block first. What was saved of it by then is still its own to take back.
"""

from collections.abc import Collection
from typing import NamedTuple

from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.blocks import AddressKey, BlockKey, Entry, Hold


class _Edit(NamedTuple):
    place: AddressKey
    before: Entry | None
    after: Entry | None


class ChangeSet:
    """The edits of one operation; `blocks` are those that must be saved for it to hold. Times as in the ledger."""

    def __init__(self, ledger: AllocationCache) -> None:
        self.ledger = ledger
        self.blocks: set[BlockKey] = set()
        self.now = 0.0
        self._edits: list[_Edit] = []

    def begin(self, now: float) -> None:
        """The operation is planned, once more perhaps."""
        self.now = now
        self.blocks.clear()

    def rely_on(self, place: AddressKey) -> None:
        """What is known of the place must be saved too, whoever edited it."""
        self.blocks.add(place.block)

    def give(self, place: AddressKey, owner: str) -> None:
        """The owner has the address from now on."""
        self._put(place, Entry(owner), given_at=self.now)

    def free(self, place: AddressKey, *, hold: float) -> None:
        """Nobody has the address any more, and nobody gets it for `hold` seconds, or less if that was said before."""
        entry = self.ledger.entry(place)
        if entry is None:
            return
        until = self.now + hold
        if entry.held is not None:
            until = min(entry.held.until, until)
        self._put(place, Entry(entry.owner, Hold(self.now, until)) if until > self.now else None)

    def lose(self, blocks: Collection[BlockKey]) -> None:
        """These could not be saved: what was edited there is not there."""
        self._edits = [edit for edit in self._edits if edit.place.block not in blocks]

    def take_back(self) -> None:
        """Undoes all edits that nobody else has edited since."""
        for place, before, after in reversed(self._edits):
            if self.ledger.entry(place) == after:
                self.ledger.put(place, before)
                self.rely_on(place)
        self._edits.clear()

    def _put(self, place: AddressKey, entry: Entry | None, *, given_at: float | None = None) -> None:
        self._edits.append(_Edit(place, self.ledger.entry(place), entry))
        self.ledger.put(place, entry, given_at=given_at)
        self.rely_on(place)
