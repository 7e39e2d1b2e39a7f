"""Disk latency: decides whether port files may be written on the event loop.

Writing a few small files takes less time than a round trip to a thread, and other requests would wait for the same disk
anyway. A stalled disk, however, would block the event loop. So after one slow change, all changes run in a thread for a
minute.
"""

import math
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_SLOW = 0.02  # seconds of one change
_PENALTY = 60.0  # seconds in a thread after a slow change


class DiskLatency:
    """Tracks how long changes take; `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._slow_until = -math.inf

    @property
    def is_fast(self) -> bool:
        """Whether no change was slow within the last minute."""
        return self._clock() >= self._slow_until

    def measure(self, change: Callable[[], T]) -> T:
        """Runs a change, records its duration, and returns what it returns. Raises what the change raises."""
        began = self._clock()
        try:
            return change()
        finally:
            ended = self._clock()
            if ended - began > _SLOW:
                self._slow_until = ended + _PENALTY
