"""Connections to agents: opened within a deadline, and kept for the next request when idle.

The agent may close an idle connection at any time, and the client learns that only from its next request. So `take`
skips connections that are already closed, and `http` resends a request on a new connection.

Not promised: connections from several network namespaces in one process; all threads connect from the host's.
"""

from __future__ import annotations

import contextlib
import socket

from cni_contrail.addresses import canonical_address
from cni_contrail.deadline import Deadline
from cni_contrail.link.named_tuple import NamedTuple

NONBLOCKING = int(socket.MSG_DONTWAIT)
"""Flag for `send` and `recv`. An int: combining members of the flag enumeration takes longer than the system call."""

_PEEK = int(socket.MSG_PEEK | socket.MSG_DONTWAIT)
_MAX_IDLE = 8  # per agent


class Endpoint(NamedTuple):
    """Where the agent listens: on the Unix socket if a path is given, otherwise on host and port."""

    socket_path: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"unix:{self.socket_path}" if self.socket_path else f"http://{self._bracketed_host}:{self.port}"

    @property
    def family(self) -> socket.AddressFamily:
        """Address family of the socket."""
        if self.socket_path:
            return socket.AF_UNIX
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET

    @property
    def host_header(self) -> str:
        """Value of the header `Host`."""
        return "localhost" if self.socket_path else f"{self._bracketed_host}:{self.port}"

    @property
    def _bracketed_host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


class IdleConnections:
    """The idle connections of this process, shared by all threads.

    Without a lock: `list.pop` and `append` are atomic.
    """

    def __init__(self) -> None:
        self._idle: dict[Endpoint, list[socket.socket]] = {}

    def take(self, endpoint: Endpoint) -> socket.socket | None:
        """Returns an idle connection that is still open, None if there is none."""
        idle = self._idle.get(endpoint, [])
        while idle:
            try:
                connection = idle.pop()  # the most recently used one is the least likely to be closed
            except IndexError:  # another thread took the last one
                return None
            if _is_open(connection):
                return connection
            connection.close()
        return None

    def keep(self, endpoint: Endpoint, connection: socket.socket) -> None:
        """Keeps an idle connection, or closes it if enough are kept."""
        idle = self._idle.setdefault(endpoint, [])
        if len(idle) < _MAX_IDLE:
            idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Closes all idle connections."""
        for idle in self._idle.values():
            while idle:
                idle.pop().close()


idle_connections = IdleConnections()


def connect(endpoint: Endpoint, deadline: Deadline) -> socket.socket:
    """Opens a connection; raises `OSError`."""
    connection = socket.socket(endpoint.family)
    with contextlib.ExitStack() as undo:
        undo.callback(connection.close)
        address = endpoint.socket_path or (_resolve(endpoint.host, deadline), endpoint.port)
        connection.settimeout(time_left(deadline))
        connection.connect(address)
        connection.settimeout(None)  # reads and writes wait by deadline instead
        undo.pop_all()
    return connection


def send(connection: socket.socket, data: bytes, deadline: Deadline) -> None:
    """Sends all data, usually with one system call; raises `OSError`."""
    sent = _send_nonblocking(connection, data)
    if sent < len(data):
        connection.settimeout(time_left(deadline))
        connection.sendall(data[sent:])
        connection.settimeout(None)


def time_left(deadline: Deadline) -> float:
    """Returns the seconds that a socket may wait; raises `TimeoutError` if none are left."""
    if deadline.expired:
        raise TimeoutError
    return deadline.remaining


def _send_nonblocking(connection: socket.socket, data: bytes) -> int:
    try:
        return connection.send(data, NONBLOCKING)
    except BlockingIOError:
        return 0


def _is_open(connection: socket.socket) -> bool:
    """Returns whether there is nothing to read: neither end of stream nor unrequested data."""
    try:
        connection.recv(1, _PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _resolve(host: str, deadline: Deadline) -> str:
    """Returns an address of the host, resolved in a thread of its own since a lookup has no timeout."""
    if canonical_address(host):
        return host
    from queue import Empty, SimpleQueue
    from threading import Thread

    found: SimpleQueue[str | OSError] = SimpleQueue()

    def look_up() -> None:
        try:
            found.put(socket.gethostbyname(host))  # IPv4 only, as `Endpoint.family` assumes for names
        except OSError as error:
            found.put(error)

    Thread(target=look_up, daemon=True).start()  # daemon: a hanging lookup must not keep the process alive
    try:
        address = found.get(timeout=time_left(deadline))
    except Empty:
        raise TimeoutError from None
    if isinstance(address, OSError):
        raise address
    return address
