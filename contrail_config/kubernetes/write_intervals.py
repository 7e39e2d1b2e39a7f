"""Write intervals: how long each object must wait for its next write.

The first write of an object never waits. Only the writes of the last interval are remembered, so the size is bounded by
their number and not by that of the objects.
"""

from contrail_config.kube.object_cache import Key


class WriteIntervals:
    """Times are seconds of one clock that never goes backwards."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._next: dict[Key, float] = {}  # the earliest first, since each interval is as long

    def __len__(self) -> int:
        return len(self._next)

    def written(self, key: Key, *, now: float) -> None:
        """Starts the interval of an object that is written now."""
        self._next.pop(key, None)
        self._next[key] = now + self._interval
        while (oldest := next(iter(self._next))) != key and self._next[oldest] <= now:
            del self._next[oldest]

    def remaining(self, key: Key, *, now: float) -> float:
        """Returns the seconds until the object may be written again, 0 if it may be now."""
        return max(0.0, self._next.get(key, now) - now)
