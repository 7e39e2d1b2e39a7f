"""The time of day, told so that setting the machine's clock does not disturb what runs: by it no hold ends early."""

import time


class SteadyClock:
    """Counts on from the time of day when it was made."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def __call__(self) -> float:
        """Seconds since the epoch."""
        return self._offset + time.monotonic()
