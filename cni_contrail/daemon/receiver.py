"""Receiver of requests: one thread that accepts connections, reads the requests and acknowledges them.

A shim gives up if it gets no acknowledgement within 2 s. So this thread does nothing else and waits for nobody: it
reads what has arrived, and closes a connection that is not complete in time. Other threads queue and run the calls.
"""

from __future__ import annotations

import select
import threading
import traceback
from collections.abc import Callable
from typing import NamedTuple

from cni_contrail.daemon.acceptor import REQUEST_TIMEOUT
from cni_contrail.daemon.connection_source import ConnectionSource
from cni_contrail.daemon.reception import Reception
from cni_contrail.daemon.shim_connection import ShimConnection
from cni_contrail.deadline import Deadline
from cni_contrail.log import Log

_MAX_INCOMPLETE = 1024  # more than the shims that can have connected and not yet sent their request
_STOP_TIMEOUT = 1.0


class IncompleteRequest(NamedTuple):
    """A connection whose request is not whole yet."""

    connection: ShimConnection
    deadline: Deadline


class Receiver:
    """Receives from `source`, whenever no acceptor does; what `reception` calls must not wait."""

    def __init__(self, source: ConnectionSource, log: Log, reception: Reception) -> None:
        self._source = source
        self._log = log
        self._reception = reception
        self._incomplete: dict[int, IncompleteRequest] = {}  # by descriptor, oldest first
        self._epoll = select.epoll()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Starts to receive; `source` listens already, and the acceptors watch it."""
        self._source.watch(self._epoll)
        self._thread.start()

    def stop(self) -> None:
        """Stops; connections without an acknowledged request are closed, so that their shims repeat it."""
        self._source.stop()
        self._thread.join(_STOP_TIMEOUT)

    def _run(self) -> None:
        with self._epoll:
            while not self._source.is_stopped:
                for descriptor, _ in self._epoll.poll(self._seconds_left()):
                    if descriptor == self._source.fileno():
                        self._accept_next()
                    elif descriptor in self._incomplete:
                        self._handle(self._continue, self._incomplete[descriptor].connection)
                self._close_late()
            for each in self._incomplete.values():
                each.connection.close()
            while accepted := self._source.accept():
                accepted.close()

    def _accept_next(self) -> None:
        # One only, not all that wait: epoll tells if there are more, and the thread that runs the call has just been
        # woken, and would wait for this one to leave the interpreter.
        connection = self._source.accept()
        if connection is not None:
            self._handle(self._begin, connection)

    def _handle(self, step: Callable[[ShimConnection], None], connection: ShimConnection) -> None:
        """Takes a step with a connection; closes it if the step fails, so that this thread never ends by one."""
        try:
            step(connection)
        except Exception:  # noqa: BLE001 - see above
            self._log.error(f"connection closed by an unexpected exception: {traceback.format_exc()}")
            self._incomplete = {
                key: each for key, each in self._incomplete.items() if each.connection is not connection
            }
            connection.close()

    def _begin(self, connection: ShimConnection) -> None:
        if not self._reception.begin(connection):
            self._make_room()
            self._incomplete[connection.fileno()] = IncompleteRequest(connection, Deadline(REQUEST_TIMEOUT))
            self._epoll.register(connection.fileno(), select.EPOLLIN)

    def _continue(self, connection: ShimConnection) -> None:
        descriptor = connection.fileno()
        # Unregistered first: when the request is whole, another thread may close the descriptor at any time.
        self._epoll.unregister(descriptor)
        if self._reception.read(connection):
            del self._incomplete[descriptor]
        else:
            self._epoll.register(descriptor, select.EPOLLIN)

    def _make_room(self) -> None:
        """Closes the oldest connection if there are too many: a shim sends its request at once."""
        if len(self._incomplete) >= _MAX_INCOMPLETE:
            self._close_oldest(f"request: not complete, and {_MAX_INCOMPLETE} newer ones are not either")

    def _close_late(self) -> None:
        while self._incomplete and next(iter(self._incomplete.values())).deadline.expired:
            self._close_oldest(f"request: timed out after {REQUEST_TIMEOUT:g} s")

    def _close_oldest(self, reason: str) -> None:
        self._log.error(reason)
        self._incomplete.pop(next(iter(self._incomplete))).connection.close()

    def _seconds_left(self) -> float | None:
        """Seconds until the first connection is late; None if there is none."""
        return next((each.deadline.remaining for each in self._incomplete.values()), None)
