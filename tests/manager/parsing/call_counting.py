"""Cost of work, counted in function calls: independent of the machine and its load."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_calls(work: Callable[[], object]) -> int:
    """Returns the number of calls of Python and C functions."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def call_growth(work: Callable[[int], object], *, size: int) -> float:
    """Returns the factor in calls for four times the size: 4 if linear, 16 if quadratic."""
    work(2)  # fills caches
    small = count_calls(lambda: work(size))
    return count_calls(lambda: work(4 * size)) / small
