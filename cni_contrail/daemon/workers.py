"""Pool of worker threads. Each accepts its next connection itself, so none is handed from thread to thread.

A worker that accepted a connection first starts a successor if no other worker is idle. So one worker always accepts,
until the limit is reached; then new connections wait in the backlog, and their shims fail with code 11 after 2 s.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from cni_contrail.daemon.accept_errors import AcceptErrors
from cni_contrail.deadline import Deadline
from cni_contrail.log import Log

_BACKLOG = 512
_MAX_IDLE = 8
_STACK_SIZE = 1024 * 1024  # bytes of address space; memory is used only as the stack grows

Serve = Callable[[socket.socket], None]


class Workers:
    """At most `limit` threads that serve connections of the listener."""

    def __init__(self, listener: socket.socket, serve: Serve, log: Log, *, limit: int) -> None:
        self._accept_errors = AcceptErrors("socket", log)
        self._listener = listener
        self._serve = serve
        self._limit = limit
        self._stopped = threading.Event()
        self._changed = threading.Condition()
        self._count = 0
        self._idle = 0

    def start(self) -> None:
        """Starts to listen and to serve."""
        self._listener.listen(_BACKLOG)
        threading.stack_size(_STACK_SIZE)
        with self._changed:
            self._start_worker()

    def stop(self, timeout: float) -> bool:
        """Stops accepting and drains running calls; returns whether all ended within `timeout` seconds."""
        self._stopped.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the threads in accept(2), which closing would not
        deadline = Deadline(timeout)
        with self._changed:
            return self._changed.wait_for(lambda: self._count == 0, deadline.remaining)

    def _start_worker(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()
        self._count += 1
        self._idle += 1

    def _work(self) -> None:
        try:
            while (connection := self._accept()) is not None:
                self._become_busy()
                self._serve(connection)
                if not self._become_idle():
                    break
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def _accept(self) -> socket.socket | None:
        """Returns the next connection, None after `stop`."""
        while not self._stopped.is_set():
            try:
                return self._listener.accept()[0]
            except OSError as error:  # shut down; or out of descriptors, until a call closes some
                if not self._stopped.is_set():
                    self._accept_errors.report(error)
                    self._accept_errors.pause(self._stopped)
        return None

    def _become_busy(self) -> None:
        with self._changed:
            self._idle -= 1
            if not self._idle and self._count < self._limit:
                with contextlib.suppress(RuntimeError):  # no thread can be started: this one will accept again
                    self._start_worker()

    def _become_idle(self) -> bool:
        """Returns False if enough workers are idle already: this one ends."""
        with self._changed:
            if self._idle >= _MAX_IDLE:
                return False
            self._idle += 1
            return True
