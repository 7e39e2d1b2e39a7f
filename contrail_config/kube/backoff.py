"""Exponential backoff with jitter, for loops that never end and for retries of single requests.

`tenacity` covers the rest: series of attempts that end (`retry_on_conflict`, `ensure_crd`). It does not fit a loop that
runs forever and resets its backoff after a success, and one of its series per request costs a quarter of the processor
time of a request. The plugin imports the standard library only and has `cni_contrail.deadline` instead.
"""

import random

MAX_RETRY_AFTER = 120.0
"""Cap, in seconds, of a delay that the server asks for."""


class Backoff:
    """Delays between the attempts of one series.

    The delay doubles with each failure, from `first` up to `longest` seconds, and is shortened by up to half at random:
    the jitter keeps clients that failed together from retrying together.
    """

    def __init__(self, *, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._failures = 0

    def reset(self) -> None:
        """Starts over with the first delay, after a success."""
        self._failures = 0

    def next_pause(self, *, retry_after: float = 0.0) -> float:
        """Counts a failure and returns the delay before the next attempt, in seconds.

        The delay is no shorter than `retry_after`, which the server requests, up to MAX_RETRY_AFTER.
        """
        bound = min(self._longest, self._first * 2.0 ** min(self._failures, 32))
        self._failures += 1
        requested = min(retry_after, MAX_RETRY_AFTER) * random.uniform(1.0, 1.1)  # noqa: S311 - jitter needs no secrecy
        return max(random.uniform(bound / 2, bound), requested)  # noqa: S311 - jitter needs no secrecy
