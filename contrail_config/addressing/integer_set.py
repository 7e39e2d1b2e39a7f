"""A set of natural numbers that finds the next number that is not in it.

A plain set makes that search as long as the run of numbers that are taken: 65,000 steps for each address of a nearly
full /16. Here the numbers lie in blocks of 64, one bit each; one level up, again in blocks of 64, a bit says that the
block below is full, and so on upwards. A search climbs past whatever is full and comes down once: two steps for each
level, whatever is taken, and there are at most three levels for a full /16 and four for a full /12. Empty blocks and
levels do not exist, so an empty /64 costs nothing, and no size need be told beforehand.
"""

from typing import Final

_SHIFT: Final = 6
_LOW_BITS: Final = 63
_FULL: Final = (1 << 64) - 1


class IntegerSet:
    """Natural numbers of any size; adding one twice, or discarding one that is not in it, is no error."""

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        self._levels: list[dict[int, int]] = [{}]

    def __contains__(self, number: int) -> bool:
        return bool(self._levels[0].get(number >> _SHIFT, 0) >> (number & _LOW_BITS) & 1)

    def add(self, number: int) -> None:
        """Puts the number in; a block that it fills is marked full one level up."""
        for level in self._levels:
            block = level.get(number >> _SHIFT, 0) | 1 << (number & _LOW_BITS)
            level[number >> _SHIFT] = block
            if block != _FULL:
                return
            number >>= _SHIFT
        self._levels.append({number >> _SHIFT: 1 << (number & _LOW_BITS)})

    def discard(self, number: int) -> None:
        """Takes the number out; a block that was full is so no more, one level up."""
        for level in self._levels:
            before = level.get(number >> _SHIFT, 0)
            after = before & ~(1 << (number & _LOW_BITS))
            if after:
                level[number >> _SHIFT] = after
            else:
                level.pop(number >> _SHIFT, None)
            if before != _FULL:
                return
            number >>= _SHIFT

    def first_missing(self, start: int) -> int:
        """The smallest number from `start` on that is not in the set."""
        number = start
        for height, level in enumerate(self._levels):
            gaps = ~level.get(number >> _SHIFT, 0) & (_FULL << (number & _LOW_BITS)) & _FULL
            if gaps:
                return self._descend(number & ~_LOW_BITS | _lowest_bit(gaps), height)
            number = (number >> _SHIFT) + 1
        return self._descend(number, len(self._levels))

    def _descend(self, block: int, height: int) -> int:
        """The smallest number missing in a block, `height` levels up, that is not full."""
        for level in reversed(self._levels[:height]):
            block = block << _SHIFT | _lowest_bit(~level.get(block, 0) & _FULL)
        return block


def _lowest_bit(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
