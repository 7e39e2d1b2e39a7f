"""Acceptors: threads that accept a connection and run its call themselves.

A call that another thread runs begins when that thread has been woken and has got the interpreter, some 0.1 ms later.
While all acceptors are at work, the receiver takes the connections.
"""

from __future__ import annotations

import select
import threading
import traceback

from cni_contrail.daemon.connection_source import ConnectionSource
from cni_contrail.daemon.reception import Reception
from cni_contrail.daemon.shim_connection import ShimConnection
from cni_contrail.deadline import Deadline
from cni_contrail.log import Log

REQUEST_TIMEOUT = 2.0
"""Seconds for a whole request."""


class Acceptor:
    """One thread. The calls that `reception` hands over run in it, and must not raise."""

    def __init__(self, source: ConnectionSource, log: Log, reception: Reception) -> None:
        self._source = source
        self._log = log
        self._reception = reception
        self._epoll = select.epoll()

    def start(self) -> None:
        """Starts to accept; `source` listens already."""
        self._source.watch(self._epoll)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with self._epoll:
            while not self._source.is_stopped:
                self._epoll.poll()
                connection = self._source.accept()
                if connection is not None:
                    self._serve(connection)

    def _serve(self, connection: ShimConnection) -> None:
        """Receives the request; closes the connection if that fails, so that this thread never ends by one."""
        try:
            self._receive(connection)
        except TimeoutError:
            self._log.error(f"request: timed out after {REQUEST_TIMEOUT:g} s")
            connection.close()
        except Exception:  # noqa: BLE001 - see above
            self._log.error(f"connection closed by an unexpected exception: {traceback.format_exc()}")
            connection.close()

    def _receive(self, connection: ShimConnection) -> None:
        is_received = self._reception.begin(connection)
        if is_received:
            return
        deadline = Deadline(REQUEST_TIMEOUT)
        while not is_received:
            deadline.wait_readable(connection.fileno())
            is_received = self._reception.read(connection)
