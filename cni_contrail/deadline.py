"""Deadlines: every wait of the plugin is bounded by one, and may be interrupted earlier.

Where many calls share a process, a call whose runtime has disconnected must not keep waiting. Backoff is implemented
here, not with a library: ADD imports only the standard library, and an interruption must end a pause.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable, Iterator, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import ClassVar, TypeVar

    Read = TypeVar("Read")

_SHORT_WAIT = 5.0  # milliseconds


class Interruption:
    """Ends waits early. This base class never interrupts: a call that is a process of its own is killed instead."""

    @property
    def descriptors(self) -> Sequence[int]:
        """Descriptors that become readable when the wait may have to end."""
        return ()

    def check(self) -> None:
        """Raises `PluginError` if the wait must end."""


NEVER = Interruption()


class Deadline:
    """The moment `seconds` from now, on the monotonic clock; an `interruption` ends waits earlier.

    `around_long_waits` returns what surrounds each pause between attempts, and each other wait from its sixth
    millisecond on: the daemon serves other calls.
    """

    around_long_waits: ClassVar[Callable[[], AbstractContextManager[None]]] = contextlib.nullcontext

    def __init__(self, seconds: float, interruption: Interruption = NEVER) -> None:
        self._end = time.monotonic() + seconds
        self._interruption = interruption

    @property
    def remaining(self) -> float:
        """Seconds until the deadline, 0 once it has expired."""
        return max(0.0, self._end - time.monotonic())

    @property
    def expired(self) -> bool:
        """Whether the deadline has expired."""
        return self.remaining == 0

    def attempts(self, first_pause: float, longest_pause: float) -> Iterator[None]:
        """Yields immediately, then after pauses (seconds) that double, with jitter, until the deadline expires.

        The last attempt is just after the deadline, so that it sees what happened during the last pause.
        """
        yield
        pause = first_pause
        while not self.expired:
            self._pause(min(self.remaining, _jitter(pause)))
            yield
            pause = min(pause * 2, longest_pause)

    def wait_readable(self, descriptor: int) -> None:
        """Returns when the descriptor is readable; raises `TimeoutError`, or the error of the interruption."""
        if not self._wait((descriptor,), self.remaining):
            raise TimeoutError

    def read_when_readable(self, descriptor: int, read: Callable[[], Read]) -> Read:
        """Returns what the non-blocking `read` returns, retried while it would block; raises as `wait_readable` does.

        The first `read` comes before any poll: in most cases the data is already there.
        """
        while True:
            try:
                return read()
            except BlockingIOError:
                self.wait_readable(descriptor)

    def _pause(self, seconds: float) -> None:
        """Waits; raises the error of the interruption."""
        # However short: many short pauses are a long wait.
        with Deadline.around_long_waits():
            self._is_readable((), self._poll(()).poll(seconds * 1000))

    def _wait(self, descriptors: Sequence[int], seconds: float) -> bool:
        """Returns whether a descriptor is readable in time; raises the error of the interruption."""
        poll = self._poll(descriptors)
        milliseconds = seconds * 1000
        ready = poll.poll(min(milliseconds, _SHORT_WAIT))
        if ready or milliseconds <= _SHORT_WAIT:
            return self._is_readable(descriptors, ready)
        with Deadline.around_long_waits():
            return self._is_readable(descriptors, poll.poll(milliseconds - _SHORT_WAIT))

    def _poll(self, descriptors: Sequence[int]) -> select.poll:
        poll = select.poll()
        for descriptor in (*descriptors, *self._interruption.descriptors):
            poll.register(descriptor, select.POLLIN)
        return poll

    def _is_readable(self, descriptors: Sequence[int], ready: Sequence[tuple[int, int]]) -> bool:
        """Returns whether one of the descriptors is ready; raises the error of the interruption if none is."""
        if not {descriptor for descriptor, _ in ready}.isdisjoint(descriptors):
            return True
        self._interruption.check()
        return False


def _jitter(seconds: float) -> float:
    from random import uniform  # most calls never wait, and the import takes as long as creating a veth pair

    return seconds * uniform(0.5, 1)  # noqa: S311 - spreads load, keeps no secret
