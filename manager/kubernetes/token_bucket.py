"""A bound on how much is done: so much per second, and some at once after a time with less."""

import time
from collections.abc import Callable


class TokenBucket:
    """`rate` per second, saved up to `burst`. `clock`: seconds, that never go back."""

    def __init__(self, *, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self._burst = burst
        self._clock = clock
        self._saved = burst
        self._counted = clock()

    def take(self) -> bool:
        """Whether one more may be done now."""
        now = self._clock()
        self._saved = min(self._burst, self._saved + (now - self._counted) * self.rate)
        self._counted = now
        if self._saved < 1:
            return False
        self._saved -= 1
        return True
