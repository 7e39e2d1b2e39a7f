"""How long something may last: every wait of the plugin ends by one of these.

A wait may be given up earlier: where many calls share a process, one whose runtime hung up must not wait on.

`Deadline.tries` is a backoff of its own: the plugin imports the standard library only, and interruptions end its
pauses.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Read = TypeVar("Read")


class Interruption:
    """What ends waits early. This one never comes: a call that is a process of its own is killed instead."""

    @property
    def descriptors(self) -> Sequence[int]:
        """Become readable when it may have come."""
        return ()

    def check(self) -> None:
        """Raises `PluginError` if it has come."""


NEVER = Interruption()


class Deadline:
    """A moment that is `seconds` from now; waits until then end before if there is an `interruption`."""

    def __init__(self, seconds: float, interruption: Interruption = NEVER) -> None:
        self._end = time.monotonic() + seconds
        self._interruption = interruption

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
            self._await((), min(self.remaining, _jitter(pause)))
            yield
            pause = min(pause * 2, longest_pause)

    def await_readable(self, descriptor: int) -> None:
        """Returns when the descriptor can be read; raises `TimeoutError`, or as the interruption does."""
        if not self._await((descriptor,), self.remaining):
            raise TimeoutError

    def when_readable(self, descriptor: int, read: Callable[[], Read]) -> Read:
        """What `read` returns, which does not wait itself; it is tried first. Raises as both do."""
        while True:
            try:
                return read()
            except BlockingIOError:
                self.await_readable(descriptor)

    def _await(self, awaited: Sequence[int], seconds: float) -> bool:
        """Whether one of the descriptors can be read before the seconds are over; raises as the interruption does."""
        poll = select.poll()
        for descriptor in (*awaited, *self._interruption.descriptors):
            poll.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(seconds * 1000)}
        if not ready.isdisjoint(awaited):
            return True
        self._interruption.check()
        return False


def _jitter(seconds: float) -> float:
    from random import uniform  # most calls never wait, and it takes as long to import as a veth to make

    return seconds * uniform(0.5, 1)  # noqa: S311 - spreads load, keeps no secret
