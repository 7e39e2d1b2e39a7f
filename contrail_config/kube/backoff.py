"""Pauses between tries: doubled from the first up to a cap, and jittered so that many clients do not come at once."""

import random

LONGEST_ASKED = 120.0
"""Cap of what a server may ask for, in seconds."""


class Backoff:
    """The pauses of one series of tries, in seconds."""

    def __init__(self, *, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._failures = 0

    def reset(self) -> None:
        """A try succeeded."""
        self._failures = 0

    def next_pause(self, *, asked: float = 0.0) -> float:
        """Returns the pause after one more failure, no shorter than what the server `asked` for."""
        bound = min(self._longest, self._first * 2.0 ** min(self._failures, 32))
        self._failures += 1
        return max(random.uniform(bound / 2, bound), min(asked, LONGEST_ASKED) * random.uniform(1.0, 1.1))  # noqa: S311 - jitter needs no secrecy
