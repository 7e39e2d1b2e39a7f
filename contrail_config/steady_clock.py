"""Wall clock for holds of addresses: it ignores later changes of the system time."""

import time


class SteadyClock:
    """Seconds since the epoch as they were at its creation, plus the time since then.

    If the system time jumps ahead, no hold ends early; if it jumps back, none ends later.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def __call__(self) -> float:
        """Returns seconds since the epoch."""
        return self._offset + time.monotonic()
