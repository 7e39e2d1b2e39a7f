"""The threads that serve: each takes the next connection by itself, so that none is handed from thread to thread.

A thread that takes the last one's place at the listener sees to a successor first. So there is always one who listens,
until there are so many in all that new connections have to wait: their shims give up after 2 s, with error 11.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from cni_contrail.deadline import Deadline

_BACKLOG = 512
_MOST_IDLE = 8
_ACCEPT_PAUSE = 0.05  # seconds until it is tried again where no descriptor was to be had
_STACK = 1024 * 1024  # bytes; a thread takes what it uses of them

Serve = Callable[[socket.socket], None]


class Workers:
    """At most `most` threads that serve what comes to the listener."""

    def __init__(self, listener: socket.socket, serve: Serve, *, most: int) -> None:
        self._listener = listener
        self._serve = serve
        self._most = most
        self._stopped = threading.Event()
        self._changed = threading.Condition()
        self._all = 0
        self._idle = 0

    def start(self) -> None:
        """Begins to listen and to serve."""
        self._listener.listen(_BACKLOG)
        threading.stack_size(_STACK)
        with self._changed:
            self._add_one()

    def stop(self, patience: float) -> bool:
        """Takes no more connections and waits for those that are served; returns whether all ended in time."""
        self._stopped.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        deadline = Deadline(patience)
        with self._changed:
            return self._changed.wait_for(lambda: self._all == 0, deadline.remaining)

    def _add_one(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()
        self._all += 1
        self._idle += 1

    def _work(self) -> None:
        try:
            while (connection := self._accept()) is not None:
                self._leave_listener()
                self._serve(connection)
                if not self._return_to_listener():
                    break
        finally:
            with self._changed:
                self._all -= 1
                self._changed.notify_all()

    def _accept(self) -> socket.socket | None:
        """The next connection, None when there shall be no more."""
        while not self._stopped.is_set():
            try:
                return self._listener.accept()[0]
            except OSError:  # shut down; or out of descriptors, which some call gives back
                self._stopped.wait(_ACCEPT_PAUSE)
        return None

    def _leave_listener(self) -> None:
        with self._changed:
            self._idle -= 1
            if not self._idle and self._all < self._most:
                with contextlib.suppress(RuntimeError):  # the machine has no thread left: this one will listen again
                    self._add_one()

    def _return_to_listener(self) -> bool:
        with self._changed:
            if self._idle >= _MOST_IDLE:
                return False
            self._idle += 1
            return True
