"""What a piece of work costs, counted in calls: the same on every machine, however busy."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(work: Callable[[], object]) -> int:
    """Number of calls, of Python's own functions and those in C, that the work makes."""
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


def growth_of(work: Callable[[int], object], *, size: int) -> float:
    """How many times the calls work of four times the size costs: 4 if it is linear, 16 if it is quadratic."""
    work(2)  # whatever is remembered from the first time on
    small = calls_of(lambda: work(size))
    return calls_of(lambda: work(4 * size)) / small
