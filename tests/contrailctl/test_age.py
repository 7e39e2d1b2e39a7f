"""Ages in the format of kubectl."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrailctl.age import format_age


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (200, "3m20s"),
        (599, "9m59s"),
        (600, "10m"),
        (3600, "1h"),
        (3659, "1h"),
        (5400, "1h30m"),
        (86399, "23h"),
        (86400, "1d"),
        (90000, "1d1h"),
        (8640000, "100d"),
    ],
)
def test_the_largest_unit_is_shown_with_the_next_one_below_ten(seconds: float, text: str) -> None:
    assert format_age(seconds) == text


@given(st.floats(0, 1e9))
def test_an_age_has_at_most_6_characters(seconds: float) -> None:
    assert len(format_age(seconds)) <= 6
