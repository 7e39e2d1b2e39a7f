"""Whether the disk is quick enough for the event loop to wait for it.

A few small files are written in less time than it takes to wake a thread and be woken by it, and nobody is held up who
would not wait for the same disk with the next request. A disk that stalls is another matter: after a change that took
long, all are made in a thread for a while.
"""

import math
import time
from collections.abc import Callable

_LONG = 0.02  # seconds that a change takes
_DISTRUST = 60.0  # seconds


class DiskPace:
    """How long changes took; `clock` tells seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._slow_until = -math.inf

    @property
    def is_quick(self) -> bool:
        """Whether no change of the last minute took long."""
        return self._clock() >= self._slow_until

    def time(self, change: Callable[[], None]) -> None:
        """Makes a change, and raises what it raises."""
        began = self._clock()
        try:
            change()
        finally:
            ended = self._clock()
            if ended - began > _LONG:
                self._slow_until = ended + _DISTRUST
