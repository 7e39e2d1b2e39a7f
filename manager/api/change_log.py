"""Change log: the latest changes of networks, pods and events, encoded once for all watches.

A bounded log in the order of the changes, with one entry for each object: a further change replaces the entry and moves
it to the end. A watch has only its position in the log, so a slow client queues nothing in the manager: one that is
overtaken by the log's bounds has lost changes, and is told so. Publishing never waits.

Changes are recorded only while somebody watches, and for a while after that, so that a client whose connection broke
can continue. `is_recording` is False otherwise, and whoever publishes does nothing then. Positions are void after a
restart of the manager, which the log's own identity in each id reveals.
"""

import asyncio
import contextlib
import itertools
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

from manager.api.types import WatchedKind

MAX_WATCHES = 64
"""Watches at the same time."""

MAX_ENTRIES = 16_384
"""Changes that the log holds."""

MAX_BYTES = 16 << 20
"""Bytes of their messages."""

RETENTION = 60.0
"""Seconds after the last watch for which changes are still recorded."""

_BATCH = 256


class TooManyWatchesError(Exception):
    """All watches are in use."""


class LogClosedError(Exception):
    """The manager is stopping."""


class LogEntry(NamedTuple):
    """The latest change of an object; `namespace` and `name` are those by which it is filtered."""

    number: int
    kind: WatchedKind
    namespace: str
    name: str
    message: bytes


class ChangeLog:
    """`on_start` is called whenever recording starts. `clock` returns monotonic seconds."""

    def __init__(
        self,
        *,
        max_watches: int = MAX_WATCHES,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        retention: float = RETENTION,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_watches = max_watches
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._retention = retention
        self._clock = clock
        self._identity = secrets.token_hex(6)
        self._entries: OrderedDict[Hashable, LogEntry] = OrderedDict()
        self._bytes = 0
        self._number = 0
        self._lost = 0  # the log holds every change after this number
        self._watches = 0
        self._recorded_until = 0.0  # once nobody watches
        self._on_start: list[Callable[[], None]] = []
        self._is_recording = False
        self._wakeup: asyncio.Future[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        """The number of watches."""
        return self._watches

    @property
    def is_closed(self) -> bool:
        """Whether the manager is stopping."""
        return self._closed

    @property
    def position(self) -> int:
        """Number of the latest change."""
        return self._number

    @property
    def is_recording(self) -> bool:
        """Whether changes are to be published."""
        if self._is_recording and not self._watches and self._clock() >= self._recorded_until:
            self._stop_recording()
        return self._is_recording

    def on_start(self, callback: Callable[[], None]) -> None:
        """Calls `callback` whenever recording starts."""
        self._on_start.append(callback)

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Counts a watch until the context is left. Raises TooManyWatchesError and LogClosedError."""
        if self._closed:
            raise LogClosedError("the manager is stopping")
        if self._watches >= self._max_watches:
            raise TooManyWatchesError(f"too many watches: limit is {self._max_watches}; retry later")
        was_recording = self.is_recording
        self._watches += 1
        self._is_recording = True
        if not was_recording:
            for callback in self._on_start:
                callback()
        try:
            yield
        finally:
            self._watches -= 1
            self._recorded_until = self._clock() + self._retention

    def publish(self, key: Hashable, kind: WatchedKind, *, namespace: str, name: str, message: bytes) -> None:
        """Adds a change of the object `key`, and wakes the watches."""
        self._number += 1
        if replaced := self._entries.pop(key, None):
            self._bytes -= len(replaced.message)
        self._entries[key] = LogEntry(self._number, kind, namespace, name, message)
        self._bytes += len(message)
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self._bytes -= len(oldest.message)
            self._lost = oldest.number
        self._wake()

    def after(self, number: int) -> list[LogEntry] | None:
        """Returns the next changes after this one, oldest first; None if some of them are lost."""
        if number < self._lost:
            return None
        newest_first = itertools.takewhile(lambda entry: entry.number > number, reversed(self._entries.values()))
        return list(newest_first)[: -_BATCH - 1 : -1]

    async def wait(self, number: int, *, seconds: float) -> None:
        """Returns once there is a change after this one, the log is closed, or after some seconds."""
        if self._number > number or self._closed:
            return
        if self._wakeup is None:
            self._wakeup = asyncio.get_running_loop().create_future()
        await asyncio.wait([self._wakeup], timeout=seconds)  # does not cancel the future, which others wait for

    def id_of(self, number: int) -> str:
        """Returns the id of a change, by which a client continues."""
        return f"{self._identity}-{number}"

    def number_of(self, event_id: str) -> int | None:
        """Returns the number in an id; None if the changes after it are not known."""
        identity, _, text = event_id.partition("-")
        if identity != self._identity or not (text.isascii() and text.isdigit() and len(text) < 20):
            return None
        number = int(text)
        return number if self.is_recording and self._lost <= number <= self._number else None

    def close(self) -> None:
        """Ends all watches. Idempotent."""
        self._closed = True
        self._wake()

    def _stop_recording(self) -> None:
        self._is_recording = False
        self._entries.clear()
        self._bytes = 0
        # The next number is never sent: positions before it miss the changes that are not recorded from now on.
        self._number += 1
        self._lost = self._number

    def _wake(self) -> None:
        if self._wakeup is not None:
            self._wakeup.set_result(None)
            self._wakeup = None
