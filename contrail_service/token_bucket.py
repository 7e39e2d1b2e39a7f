"""Token bucket: a rate limit that permits bursts after quieter times."""

import time
from collections.abc import Callable


class TokenBucket:
    """Refills `rate` tokens per second, up to `burst`. `clock` returns monotonic seconds."""

    def __init__(self, *, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = burst
        self._refilled_at = clock()

    @property
    def level(self) -> float:
        """The tokens that there are now; negative if some are reserved that will be there only later."""
        self._refill()
        return self._tokens

    def take(self) -> bool:
        """Takes a token; returns whether there was one."""
        self._refill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def reserve(self, tokens: float) -> float:
        """Takes tokens, also those that will be there only later; returns the seconds until then."""
        self._refill()
        self._tokens -= tokens
        return max(0.0, -self._tokens / self.rate)

    def _refill(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._refilled_at) * self.rate)
        self._refilled_at = now
