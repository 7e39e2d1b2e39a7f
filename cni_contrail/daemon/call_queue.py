"""Queue of received calls: first come, first served, a few at work at a time.

Hundreds of threads that want to run at the same time slow each other down, and keep the receiver from the interpreter:
shims would get no acknowledgement in time. So a call begins when it gets one of the queue's slots. It frees the slot
while it waits for long, for the agent, a lock or its shim (`without_slot`), and afterwards takes one before calls that
have not begun. After an error it continues without a slot: a rollback must not wait.

So the number of threads is that of the slots plus that of the calls that wait, at most `limit`.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import deque
from collections.abc import Callable, Iterator

from cni_contrail.daemon.workers import Work
from cni_contrail.errors import TryAgainError


class _Slot(threading.local):
    """The queue of which the calling thread has a slot."""

    queue: CallQueue | None = None


_own_slot = _Slot()


class CallQueue:
    """Calls of some commands, `named` in errors; `run` runs each in a thread. At most `limit` have not ended."""

    def __init__(self, run: Callable[[Work], None], named: str, *, slots: int, limit: int) -> None:
        self._run = run
        self._named = named
        self._limit = limit
        self._lock = threading.Lock()
        self._free = slots
        self._unfinished = 0
        self._new: deque[Work] = deque()
        self._returning: deque[threading.Lock] = deque()

    def submit(self, call: Work, run: Callable[[Work], None] | None = None) -> None:
        """Queues a call, which must not raise; `run` runs what can begin now, by default in another thread.

        Raises `TryAgainError` if there are too many.
        """
        with self._lock:
            if self._unfinished >= self._limit:
                raise TryAgainError(f"too many {self._named}: {self._limit} have not ended")
            self._unfinished += 1
            self._new.append(call)
        self._begin_calls(run or self._run)

    def free_slot(self) -> None:
        """Frees the calling thread's slot."""
        _own_slot.queue = None
        with self._lock:
            self._free += 1
        self._begin_calls(self._run)

    def take_slot(self) -> None:
        """Waits for a slot for the calling thread."""
        returned = threading.Lock()
        with self._lock:
            if self._free:
                self._free -= 1
            else:
                returned.acquire()
                self._returning.append(returned)
        with returned:
            _own_slot.queue = self

    def _begin_calls(self, run: Callable[[Work], None]) -> None:
        while call := self._next():
            run(functools.partial(self._work, call))

    def _work(self, call: Work | None) -> None:
        while call:
            _own_slot.queue = self
            call()
            call = self._end()

    def _end(self) -> Work | None:
        """Ends the calling thread's call, and returns the next one for the same thread."""
        has_slot = _own_slot.queue is not None
        _own_slot.queue = None
        with self._lock:
            self._unfinished -= 1
            self._free += has_slot
        return self._next()

    def _next(self) -> Work | None:
        """Gives free slots to calls that return, then one to the first new call, if there is one."""
        with self._lock:
            while self._free and self._returning:
                self._free -= 1
                self._returning.popleft().release()
            if not self._free or not self._new:
                return None
            self._free -= 1
            return self._new.popleft()


class SlotKeepingQueue(CallQueue):
    """A queue whose calls keep their slot while they wait: the slots bound what the calls hold in memory."""

    def free_slot(self) -> None:
        """Keeps the slot."""

    def take_slot(self) -> None:
        """Returns at once: the slot was kept."""


@contextlib.contextmanager
def without_slot() -> Iterator[None]:
    """Frees the calling thread's slot, if it has one, while the body runs; takes one again unless the body raises."""
    queue = _own_slot.queue
    if queue is None:
        yield
        return
    queue.free_slot()
    yield
    queue.take_slot()
