"""The system time of this process, which tests set."""

import time


class SystemClock:
    """The system time, which a test can set `ahead` by some seconds, or back."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._now = time.time

    def __call__(self) -> float:
        return self._now() + self.ahead
