"""Receiver of requests: one thread accepts all connections, reads the requests and acknowledges them.

A shim gives up if it gets no acknowledgement within 2 s. So this thread does nothing else and waits for nobody: it
reads what has arrived, and closes a connection that is not complete in time. Other threads queue and run the calls.
"""

from __future__ import annotations

import select
import socket
import threading
import traceback
from collections.abc import Callable
from typing import NamedTuple

from cni_contrail.daemon.accept_errors import AcceptErrors
from cni_contrail.daemon.errors import NoRequestError, ProtocolError
from cni_contrail.daemon.protocol import ShimRequest
from cni_contrail.daemon.shim_connection import ShimConnection
from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, PluginError
from cni_contrail.log import Log

_ROOT = 0
_BACKLOG = 4096  # connections that were not accepted yet; the kernel's limit may be lower
_MAX_INCOMPLETE = 1024  # more than the shims that can have connected and not yet sent their request
_REQUEST_TIMEOUT = 2.0  # seconds for a whole request
_STOP_TIMEOUT = 1.0


class IncompleteRequest(NamedTuple):
    """A connection whose request is not whole yet."""

    connection: ShimConnection
    deadline: Deadline


class Receiver:
    """Calls `receive` with each request, `reject` with those that are not read whole, both acknowledged.

    Neither may wait.
    """

    def __init__(
        self,
        listener: socket.socket,
        log: Log,
        *,
        receive: Callable[[ShimConnection, ShimRequest], None],
        reject: Callable[[ShimConnection, PluginError], None],
    ) -> None:
        self._listener = listener
        self._log = log
        self._receive = receive
        self._reject = reject
        self._accept_errors = AcceptErrors("socket", log)
        self._incomplete: dict[int, IncompleteRequest] = {}  # by descriptor, oldest first
        self._epoll = select.epoll()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Starts to listen and to receive."""
        self._listener.settimeout(0)
        self._listener.listen(_BACKLOG)
        self._epoll.register(self._listener, select.EPOLLIN)
        self._thread.start()

    def stop(self) -> None:
        """Stops; connections without an acknowledged request are closed, so that their shims repeat it."""
        self._stopped.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # refuses new connections, and wakes the thread
        self._thread.join(_STOP_TIMEOUT)

    def _run(self) -> None:
        with self._epoll:
            while not self._stopped.is_set():
                for descriptor, _ in self._epoll.poll(self._seconds_left()):
                    if descriptor == self._listener.fileno():
                        self._accept_next()
                    elif descriptor in self._incomplete:
                        self._handle(self._continue, self._incomplete[descriptor].connection)
                self._close_late()
            for each in self._incomplete.values():
                each.connection.close()
            while accepted := self._accept():
                accepted.close()

    def _accept_next(self) -> None:
        # One only, not all that wait: epoll tells if there are more, and the thread that runs the call has just been
        # woken, and would wait for this one to leave the interpreter.
        accepted = self._accept()
        if accepted is not None:
            self._handle(self._begin, ShimConnection(accepted))

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

    def _accept(self) -> socket.socket | None:
        """Returns a connection, None if there is none or it cannot be accepted."""
        try:
            return self._listener.accept()[0]
        except BlockingIOError:
            return None
        except OSError as error:  # shut down; or out of descriptors, until a call closes some
            if not self._stopped.is_set():
                self._accept_errors.report(error)
                self._accept_errors.pause(self._stopped)
            return None

    def _begin(self, connection: ShimConnection) -> None:
        if connection.peer_user != _ROOT:
            message = f"permission denied: user {connection.peer_user} is not root"
            self._acknowledge_and_reject(connection, PluginError(Code.DAEMON_PROTOCOL, message))
        elif not self._read(connection):
            self._make_room()
            self._incomplete[connection.fileno()] = IncompleteRequest(connection, Deadline(_REQUEST_TIMEOUT))
            self._epoll.register(connection.fileno(), select.EPOLLIN)

    def _continue(self, connection: ShimConnection) -> None:
        descriptor = connection.fileno()
        # Unregistered first: when the request is whole, another thread may close the descriptor at any time.
        self._epoll.unregister(descriptor)
        if self._read(connection):
            del self._incomplete[descriptor]
        else:
            self._epoll.register(descriptor, select.EPOLLIN)

    def _read(self, connection: ShimConnection) -> bool:
        """Reads what has arrived; returns whether this thread is done with the connection."""
        try:
            request = connection.receive()
        except NoRequestError:
            connection.close()
        except ProtocolError as error:
            self._log.error(str(error))
            connection.close()
        except PluginError as error:
            self._acknowledge_and_reject(connection, error)
        else:
            if request is None:
                return False
            connection.acknowledge()
            self._receive(connection, request)
        return True

    def _acknowledge_and_reject(self, connection: ShimConnection, error: PluginError) -> None:
        connection.acknowledge()
        self._reject(connection, error)

    def _make_room(self) -> None:
        """Closes the oldest connection if there are too many: a shim sends its request at once."""
        if len(self._incomplete) >= _MAX_INCOMPLETE:
            self._close_oldest(f"request: not complete, and {_MAX_INCOMPLETE} newer ones are not either")

    def _close_late(self) -> None:
        while self._incomplete and next(iter(self._incomplete.values())).deadline.expired:
            self._close_oldest(f"request: timed out after {_REQUEST_TIMEOUT:g} s")

    def _close_oldest(self, reason: str) -> None:
        self._log.error(reason)
        self._incomplete.pop(next(iter(self._incomplete))).connection.close()

    def _seconds_left(self) -> float | None:
        """Seconds until the first connection is late; None if there is none."""
        return next((each.deadline.remaining for each in self._incomplete.values()), None)
