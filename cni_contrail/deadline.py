"""How long something may last: every wait of the plugin ends by one of these."""

import time
from collections.abc import Iterator


class Deadline:
    """A moment that is `seconds` from now."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Seconds until then, 0 when it is over."""
        return max(0.0, self._end - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether nothing remains."""
        return self.remaining == 0

    def tries(self, first_pause: float, longest_pause: float) -> Iterator[None]:
        """Yields once at once, then after pauses (seconds) that double, with jitter, until the deadline is over.

        The last one comes when it is just over, so that what happened during the last pause is seen.
        """
        yield
        pause = first_pause
        while not self.over:
            _pause(min(self.remaining, _jitter(pause)))
            yield
            pause = min(pause * 2, longest_pause)


def _jitter(seconds: float) -> float:
    from random import uniform  # most calls never wait, and it takes as long to import as a veth to make

    return seconds * uniform(0.5, 1)  # noqa: S311 - spreads load, keeps no secret


def _pause(seconds: float) -> None:
    from threading import Event

    Event().wait(seconds)
