"""Worker threads, reused from call to call: the one that became idle last takes the next call.

They do not limit the number of calls: `call_queue` does.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from cni_contrail.deadline import Deadline

_MAX_IDLE = 8
_STACK_SIZE = 1024 * 1024  # bytes of address space; memory is used only as the stack grows

Work = Callable[[], None]
"""Must not raise."""


class Workers:
    """Threads that run one piece of work at a time each."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[SimpleQueue[Work]] = []
        self._postponed: deque[Work] = deque()
        self._threads = 0
        self._unfinished = 0

    def start(self) -> None:
        """Starts the first thread, so that there is one even if the system permits no more of them later."""
        threading.stack_size(_STACK_SIZE)
        self.run(lambda: None)

    def run(self, work: Work) -> None:
        """Runs the work in an idle thread or a new one; if none can be started, in the next that becomes idle."""
        with self._changed:
            self._unfinished += 1
            if self._idle:
                self._idle.pop().put(work)
                return
            try:
                threading.Thread(target=self._serve, args=(work,), daemon=True).start()
            except RuntimeError:
                if not self._threads:
                    raise
                self._postponed.append(work)
            else:
                self._threads += 1

    def run_here(self, work: Work) -> None:
        """Runs the work in the calling thread."""
        with self._changed:
            self._unfinished += 1
        work()
        with self._changed:
            self._unfinished -= 1
            self._changed.notify_all()

    def drain(self, timeout: float) -> bool:
        """Returns whether all work ended within `timeout` seconds."""
        deadline = Deadline(timeout)
        with self._changed:
            return self._changed.wait_for(lambda: not self._unfinished, deadline.remaining)

    def _serve(self, work: Work | None) -> None:
        inbox: SimpleQueue[Work] = SimpleQueue()
        while work is not None:
            work()
            work = self._next(inbox)

    def _next(self, inbox: SimpleQueue[Work]) -> Work | None:
        """Waits for the next work; returns None if enough threads are idle already: this one ends."""
        with self._changed:
            self._unfinished -= 1
            self._changed.notify_all()
            if self._postponed:
                return self._postponed.popleft()
            if len(self._idle) >= _MAX_IDLE:
                self._threads -= 1
                return None
            self._idle.append(inbox)
        return inbox.get()
