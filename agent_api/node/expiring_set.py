"""Expiring set: the most recent distinct texts, limited in number and age."""

from collections import OrderedDict
from collections.abc import Callable


class ExpiringSet:
    """At most `max_size` texts, each for `ttl` seconds of `clock` after it was last added."""

    def __init__(self, *, max_size: int, ttl: float, clock: Callable[[], float]) -> None:
        self._max_size = max_size
        self._ttl = ttl
        self._clock = clock
        self._added_at: OrderedDict[str, float] = OrderedDict()  # oldest first

    def add(self, text: str) -> None:
        """Adds a text, or renews it. Evicts the oldest text if the set is full."""
        self._added_at[text] = self._clock()
        self._added_at.move_to_end(text)
        if len(self._added_at) > self._max_size:
            self._added_at.popitem(last=False)

    def newest_first(self) -> tuple[str, ...]:
        """Returns the texts that have not expired, the newest first."""
        expired = self._clock() - self._ttl
        while self._added_at and next(iter(self._added_at.values())) <= expired:
            self._added_at.popitem(last=False)
        return tuple(reversed(self._added_at))
