"""Slots for connections of one listener, bounded in total and per peer.

A new connection takes the place of the oldest one. So connections that are held open cannot lock out a probe, even if
they come from the probe's own address: a probe sends its request at once and is served before it becomes the oldest.
"""

from __future__ import annotations

import contextlib
import socket
import threading

_CLOSING_TIMEOUT = 0.25  # seconds; a connection that was shut down ends as soon as its thread notices


class ConnectionSlots:
    """At most `limit` connections, of which at most `per_peer` have the same peer address."""

    def __init__(self, limit: int, per_peer: int) -> None:
        self._limit = limit
        self._per_peer = per_peer
        self._freed = threading.Condition()
        self._served: dict[socket.socket, str] = {}  # oldest first
        self._closing: set[socket.socket] = set()

    def take(self, connection: socket.socket, peer: str) -> bool:
        """Takes a slot, for which the oldest connection may be shut down.

        If `limit` connections that were shut down are still being served, it waits for one of them to end, and returns
        False after 0.25 s.
        """
        with self._freed:
            if not self._freed.wait_for(lambda: len(self._closing) < self._limit, _CLOSING_TIMEOUT):
                return False
            of_peer = [each for each, address in self._served.items() if address == peer]
            if len(of_peer) >= self._per_peer:
                self._shut_down(of_peer[0])
            elif len(self._served) >= self._limit:
                self._shut_down(next(iter(self._served)))
            self._served[connection] = peer
            return True

    def free(self, connection: socket.socket) -> None:
        """Frees the slot of a connection, after it was closed. Idempotent."""
        with self._freed:
            self._served.pop(connection, None)
            self._closing.discard(connection)
            self._freed.notify()

    def _shut_down(self, connection: socket.socket) -> None:
        del self._served[connection]
        self._closing.add(connection)
        with contextlib.suppress(OSError):  # closed already, by its peer or by its thread
            connection.shutdown(socket.SHUT_RDWR)
