"""Connections to agents: made within a deadline, and those with nothing to do kept for the next request.

A kept connection is closed by the agent when it likes, and whoever takes one learns that from the first request on it;
so `take` leaves out what is closed already, and `http` asks again on a new one.

Not promised: connections of several network namespaces in one process; all threads here connect from the host's.
"""

from __future__ import annotations

import contextlib
import socket

from cni_contrail.addresses import canonical_address
from cni_contrail.deadline import Deadline
from cni_contrail.link.named_tuple import NamedTuple

NONBLOCKING = int(socket.MSG_DONTWAIT)
"""For sending and receiving; a number, since joining flags of an enumeration takes longer than the call."""

_LOOK = int(socket.MSG_PEEK | socket.MSG_DONTWAIT)
_MOST_IDLE = 8  # of each agent


class Endpoint(NamedTuple):
    """Where the agent listens: on the Unix socket if there is one, else on host and port."""

    socket_path: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"unix:{self.socket_path}" if self.socket_path else f"http://{self._bracketed_host}:{self.port}"

    @property
    def family(self) -> socket.AddressFamily:
        """What kind of socket reaches it."""
        if self.socket_path:
            return socket.AF_UNIX
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET

    @property
    def host_header(self) -> str:
        """What goes in the header `Host`."""
        return "localhost" if self.socket_path else f"{self._bracketed_host}:{self.port}"

    @property
    def _bracketed_host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


class IdleConnections:
    """The connections of this process that have no request; used by all its threads."""

    def __init__(self) -> None:
        self._idle: dict[Endpoint, list[socket.socket]] = {}

    def take(self, endpoint: Endpoint) -> socket.socket | None:
        """One that is still open, None if there is none."""
        idle = self._idle.get(endpoint, [])
        while idle:
            try:
                connection = idle.pop()
            except IndexError:  # another thread was faster
                return None
            if _is_open(connection):
                return connection
            connection.close()
        return None

    def keep(self, endpoint: Endpoint, connection: socket.socket) -> None:
        """Keeps one that has no request any more, or closes it if there are enough."""
        idle = self._idle.setdefault(endpoint, [])
        if len(idle) < _MOST_IDLE:
            idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Closes all of them."""
        for idle in self._idle.values():
            while idle:
                idle.pop().close()


idle_connections = IdleConnections()


def connect(endpoint: Endpoint, deadline: Deadline) -> socket.socket:
    """A new connection; raises `OSError`."""
    connection = socket.socket(endpoint.family)
    with contextlib.ExitStack() as undo:
        undo.callback(connection.close)
        address = endpoint.socket_path or (_resolve(endpoint.host, deadline), endpoint.port)
        connection.settimeout(time_left(deadline))
        connection.connect(address)
        connection.settimeout(None)  # what waits, waits by a deadline
        undo.pop_all()
    return connection


def send(connection: socket.socket, data: bytes, deadline: Deadline) -> None:
    """Sends all of it, most often with one system call; raises `OSError`."""
    sent = _send_at_once(connection, data)
    if sent < len(data):
        connection.settimeout(time_left(deadline))
        connection.sendall(data[sent:])
        connection.settimeout(None)


def time_left(deadline: Deadline) -> float:
    """Seconds for a socket to wait; raises `TimeoutError` if none are left."""
    if deadline.over:
        raise TimeoutError
    return deadline.remaining


def _send_at_once(connection: socket.socket, data: bytes) -> int:
    try:
        return connection.send(data, NONBLOCKING)
    except BlockingIOError:
        return 0


def _is_open(connection: socket.socket) -> bool:
    """Whether there is nothing to read: neither an end, nor what nobody asked for."""
    try:
        connection.recv(1, _LOOK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _resolve(host: str, deadline: Deadline) -> str:
    """An address of the host, which is looked up beside, since a look-up has no time-out of its own."""
    if canonical_address(host):
        return host
    from queue import Empty, SimpleQueue
    from threading import Thread

    found: SimpleQueue[str | OSError] = SimpleQueue()

    def look_up() -> None:
        try:
            found.put(socket.gethostbyname(host))
        except OSError as error:
            found.put(error)

    Thread(target=look_up, daemon=True).start()
    try:
        address = found.get(timeout=time_left(deadline))
    except Empty:
        raise TimeoutError from None
    if isinstance(address, OSError):
        raise address
    return address
