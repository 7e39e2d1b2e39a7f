"""Hierarchical bitmap: a set of natural numbers with a fast search for the next missing number.

In a plain set that search is as long as the run of numbers present: 65,000 steps for each address of a nearly full /16.
Here level 0 stores the numbers as bits in blocks of 64. In each level above, again in blocks of 64, a set bit marks a
full block of the level below. A search climbs past full blocks and descends once: two steps for each level, with three
levels for a full /16 and four for a full /12. Empty blocks and levels are not stored, so an empty /64 costs nothing and
the size need not be known in advance.
"""

from typing import Final

_SHIFT: Final = 6
_LOW_BITS: Final = 63
_FULL: Final = (1 << 64) - 1


class IntegerSet:
    """Set of natural numbers of any size. `add` and `discard` are idempotent."""

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        self._levels: list[dict[int, int]] = [{}]

    def __contains__(self, number: int) -> bool:
        return bool(self._levels[0].get(number >> _SHIFT, 0) >> (number & _LOW_BITS) & 1)

    def add(self, number: int) -> None:
        """Adds the number; a block that becomes full is marked one level up."""
        for level in self._levels:
            block = level.get(number >> _SHIFT, 0) | 1 << (number & _LOW_BITS)
            level[number >> _SHIFT] = block
            if block != _FULL:
                return
            number >>= _SHIFT
        self._levels.append({number >> _SHIFT: 1 << (number & _LOW_BITS)})

    def discard(self, number: int) -> None:
        """Removes the number; a block that was full is unmarked one level up."""
        for level in self._levels:
            before = level.get(number >> _SHIFT, 0)
            after = before & ~(1 << (number & _LOW_BITS))
            if after:
                level[number >> _SHIFT] = after
            else:
                level.pop(number >> _SHIFT, None)
            if before != _FULL:
                return  # it was not marked one level up
            number >>= _SHIFT

    def first_missing(self, start: int) -> int:
        """Returns the smallest number >= `start` that is not in the set."""
        number = start
        for height, level in enumerate(self._levels):
            # Free bits of the block at or after `number`; the shift hides those before it.
            gaps = ~level.get(number >> _SHIFT, 0) & (_FULL << (number & _LOW_BITS)) & _FULL
            if gaps:
                return self._descend(number & ~_LOW_BITS | _lowest_bit(gaps), height)
            number = (number >> _SHIFT) + 1
        return self._descend(number, len(self._levels))

    def _descend(self, block: int, height: int) -> int:
        """Returns the smallest missing number below a block of level `height` that is not full."""
        for level in reversed(self._levels[:height]):
            block = block << _SHIFT | _lowest_bit(~level.get(block, 0) & _FULL)
        return block


def _lowest_bit(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
