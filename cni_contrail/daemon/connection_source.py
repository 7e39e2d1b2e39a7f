"""The daemon's listening socket, from which several threads accept.

Each thread watches it with an epoll of its own. The kernel wakes one that waits, in the order in which they began to
watch (EPOLLEXCLUSIVE in epoll_ctl(2)), so the last one accepts only while all others are at work.
"""

from __future__ import annotations

import select
import socket
import threading

from cni_contrail.daemon.accept_errors import AcceptErrors
from cni_contrail.daemon.shim_connection import ShimConnection
from cni_contrail.log import Log

_BACKLOG = 4096  # connections that were not accepted yet; the kernel's limit may be lower


class ConnectionSource:
    """A bound socket; all methods but `listen` may be called by any thread."""

    def __init__(self, listener: socket.socket, log: Log) -> None:
        self._listener = listener
        self._accept_errors = AcceptErrors("socket", log)
        self._stopped = threading.Event()

    def listen(self) -> None:
        """Starts to listen."""
        self._listener.settimeout(0)
        self._listener.listen(_BACKLOG)

    def fileno(self) -> int:
        """Descriptor of the socket."""
        return self._listener.fileno()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped.is_set()

    def watch(self, epoll: select.epoll) -> None:
        """Adds the socket to the epoll of a thread."""
        epoll.register(self._listener, select.EPOLLIN | select.EPOLLEXCLUSIVE)

    def accept(self) -> ShimConnection | None:
        """Returns a connection, None if there is none or it cannot be accepted; does not wait for one."""
        try:
            return ShimConnection(self._listener.accept()[0])
        except BlockingIOError:
            return None
        except OSError as error:  # shut down; or out of descriptors, until a call closes some
            if not self._stopped.is_set():
                self._accept_errors.report(error)
                self._accept_errors.pause(self._stopped)
            return None

    def stop(self) -> None:
        """Refuses new connections, and wakes all threads that watch."""
        self._stopped.set()
        self._listener.shutdown(socket.SHUT_RDWR)
