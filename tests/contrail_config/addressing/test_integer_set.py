"""Integer set: membership, and the search for the next missing number."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from contrail_config.addressing.integer_set import IntegerSet

NEAR = st.integers(0, 200)
ANYWHERE = st.one_of(NEAR, st.integers(4000, 4300), st.integers(0, 2**70))


def with_numbers(numbers: range) -> IntegerSet:
    filled = IntegerSet()
    for number in numbers:
        filled.add(number)
    return filled


@pytest.mark.parametrize(
    ("present", "start", "expected"),
    [
        (range(0), 0, 0),
        (range(0), 2**100, 2**100),
        (range(1), 0, 1),
        (range(63), 0, 63),
        (range(64), 0, 64),
        (range(65), 3, 65),
        (range(64, 128), 63, 63),
        (range(64, 128), 64, 128),
        (range(64**2), 0, 64**2),
        (range(64**2), 64**2 - 1, 64**2),
        (range(1, 64**2), 0, 0),
        (range(1, 64**2), 1, 64**2),
        (range(64**3 + 5), 7, 64**3 + 5),
    ],
)
def test_the_search_ends_at_the_first_gap(present: range, start: int, expected: int) -> None:
    assert with_numbers(present).first_missing(start) == expected


@pytest.mark.parametrize("gap", [0, 1, 63, 64, 4095, 4096, 64**3 - 1])
def test_a_gap_in_a_full_range_is_found_and_can_be_closed(gap: int) -> None:
    full = with_numbers(range(64**3))
    full.discard(gap)
    assert gap not in full
    assert full.first_missing(0) == gap
    full.add(gap)
    assert full.first_missing(0) == 64**3


@given(st.sets(ANYWHERE), ANYWHERE)
def test_membership_and_search_agree_with_a_plain_set(numbers: set[int], start: int) -> None:
    tested = IntegerSet()
    for number in numbers:
        tested.add(number)
    assert all(number in tested for number in numbers)
    assert tested.first_missing(start) == next(number for number in count(start) if number not in numbers)


class AgainstAPlainSet(RuleBasedStateMachine):
    """Adds and removes runs of numbers, so that whole blocks of several levels become full and empty."""

    def __init__(self) -> None:
        super().__init__()
        self.tested = IntegerSet()
        self.model: set[int] = set()

    @rule(first=st.integers(0, 9000), length=st.sampled_from([1, 64, 130, 4096]))
    def add_run(self, first: int, length: int) -> None:
        for number in range(first, first + length):
            self.tested.add(number)
            self.model.add(number)

    @rule(first=st.integers(0, 9000), length=st.sampled_from([1, 3, 64, 4096]))
    def discard_run(self, first: int, length: int) -> None:
        for number in range(first, first + length):
            self.tested.discard(number)
            self.model.discard(number)

    @rule(start=st.integers(0, 14000))
    def search(self, start: int) -> None:
        assert self.tested.first_missing(start) == next(n for n in count(start) if n not in self.model)

    @invariant()
    def no_empty_block_is_stored(self) -> None:
        blocks = {number >> 6 for number in self.model}
        assert self.tested._levels[0].keys() == blocks


TestAgainstAPlainSet = AgainstAPlainSet.TestCase
