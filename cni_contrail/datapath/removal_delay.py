"""When entries that are not desired may be removed: once the desired state has been complete for a while.

After a start the first complete state may still be that of a moment ago; an entry that stays longer than it is needed
harms nothing, one that goes too early loses packets.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable


class RemovalDelay:
    """Of several subjects; `clock` is monotonic, in seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: dict[Hashable, float] = {}

    def has_passed(self, subject: Hashable, *, is_complete: bool) -> bool:
        """Returns whether the subject has been complete for long enough, now included."""
        if not is_complete:
            self._since.pop(subject, None)
            return False
        now = self._clock()
        return now - self._since.setdefault(subject, now) >= self._seconds

    def forget(self, subject: Hashable) -> None:
        """Forgets a subject that is gone."""
        self._since.pop(subject, None)
