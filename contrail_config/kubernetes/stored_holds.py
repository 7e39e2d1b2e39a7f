"""Holds that were read from the server, counted on the clock of this process.

The times in an object are from the clock of the manager that released the address, which may be hours ahead or behind.
Only the length of a hold is used: it lasts that long from when this process first read it, at most `UNPLUGGED_HOLD`. So
whatever the clocks say, no hold ends before its length has passed since the release.

The count is in memory alone: it begins again with each start of a manager. A hold ends once one manager has run for its
length, five minutes at most. Managers that restart more often than that extend it for as long as they do so.

The stored times are written back as they were read. They identify the hold when the block is read again, so it is not
extended by that, even if it has expired and is still in the object, or if another manager wrote the block meanwhile.
"""

import msgspec

from contrail_config.kubernetes.blocks import AddressEntry, Block, Hold
from contrail_config.store import UNPLUGGED_HOLD


def count_holds(found: Block, known: Block, *, now: float) -> Block:
    """Returns a block that was read, with its holds on this process's clock. `known` is the block as it was before."""
    holds = {
        address: _count(entry, known.stored_holds.get(address), now=now) for address, entry in found.holds().items()
    }
    return msgspec.structs.replace(found, entries={**found.entries, **holds}, stored_holds=holds) if holds else found


def _count(found: AddressEntry, known: AddressEntry | None, *, now: float) -> AddressEntry:
    if found.hold is None:
        return found
    stored = found.hold.stored_times
    if known is not None and known.hold is not None and (known.owner, known.hold.stored_times) == (found.owner, stored):
        return msgspec.structs.replace(found, hold=known.hold)
    length = min(found.hold.until - found.hold.since, UNPLUGGED_HOLD)
    return msgspec.structs.replace(found, hold=Hold(now, now + length, stored))
