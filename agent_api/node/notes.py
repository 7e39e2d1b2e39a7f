"""Notes of what happened lately: each once, no more than so many, none for longer than so long."""

from collections import OrderedDict
from collections.abc import Callable


class Notes:
    """The newest `most` different texts of the last `seconds` by `clock`."""

    def __init__(self, *, most: int, seconds: float, clock: Callable[[], float]) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._noted: OrderedDict[str, float] = OrderedDict()  # when, the oldest first

    def add(self, text: str) -> None:
        """Notes a text, anew if it is there already."""
        self._noted[text] = self._clock()
        self._noted.move_to_end(text)
        if len(self._noted) > self._most:
            self._noted.popitem(last=False)

    def all(self) -> tuple[str, ...]:
        """Those that are not too old, the newest first."""
        oldest = self._clock() - self._seconds
        while self._noted and next(iter(self._noted.values())) <= oldest:
            self._noted.popitem(last=False)
        return tuple(reversed(self._noted))
