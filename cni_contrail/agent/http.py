"""One HTTP request and its answer, over TCP or a Unix socket, within a deadline.

Why not `http.client`: importing it, with the email and ssl packages behind it, takes longer than all the rest of an
ADD, and its timeouts hold for single reads, so that an agent that answers a byte at a time is waited for without end.
This speaks just what an agent answers to a client that closes: a status line, headers, and a body by length, in
chunks, or up to the end.
"""

from __future__ import annotations

import contextlib
import socket

from cni_contrail.addresses import canonical_address
from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, PluginError, UnreachableError
from cni_contrail.link.named_tuple import NamedTuple

_LARGEST_HEAD = 64 * 1024
_LARGEST_BODY = 4 * 1024 * 1024


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


class Answer(NamedTuple):
    """Status and body of an answer."""

    status: int
    body: bytes


def exchange(endpoint: Endpoint, method: str, target: str, body: bytes, deadline: Deadline) -> Answer:
    """Sends a request and reads the answer.

    Raises `UnreachableError` if nobody answers in time, `PluginError` with code 100 if what answers is not HTTP.
    """
    try:
        with _connect(endpoint, deadline) as connection:
            connection.sendall(_request(endpoint, method, target, body))
            return _read_answer(_Stream(connection, deadline), endpoint)
    except OSError as error:
        reason = "no answer in time" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise UnreachableError(f"agent unreachable at {endpoint}: {reason}") from error


def _connect(endpoint: Endpoint, deadline: Deadline) -> socket.socket:
    connection = socket.socket(endpoint.family)
    with contextlib.ExitStack() as undo:
        undo.callback(connection.close)
        address = endpoint.socket_path or (_resolve(endpoint.host, deadline), endpoint.port)
        connection.settimeout(_timeout(deadline))
        connection.connect(address)
        undo.pop_all()
    return connection


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
        address = found.get(timeout=_timeout(deadline))
    except Empty:
        raise TimeoutError from None
    if isinstance(address, OSError):
        raise address
    return address


def _timeout(deadline: Deadline) -> float:
    if deadline.over:
        raise TimeoutError
    return deadline.remaining


def _request(endpoint: Endpoint, method: str, target: str, body: bytes) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {endpoint.host_header}", "Connection: close"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _read_answer(stream: _Stream, endpoint: Endpoint) -> Answer:
    try:
        status_line, *header_lines = stream.until(b"\r\n\r\n", _LARGEST_HEAD).decode("latin-1").split("\r\n")
        _, status, *_ = status_line.split(" ", 2)
        pairs = (line.partition(":") for line in header_lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        return Answer(int(status), _read_body(stream, headers))
    except ValueError as error:
        raise PluginError(Code.AGENT_NONSENSE, f"what answers at {endpoint} does not speak HTTP: {error}") from error


def _read_body(stream: _Stream, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return stream.chunks()
    if "content-length" in headers:
        return stream.exactly(int(headers["content-length"]))
    return stream.rest()


class _Stream:
    """Reads from a connection, each time for no longer than the deadline leaves. Raises `ValueError` for nonsense."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._connection = connection
        self._deadline = deadline
        self._buffer = b""

    def until(self, mark: bytes, limit: int) -> bytes:
        while mark not in self._buffer:
            if len(self._buffer) > limit:
                raise ValueError("a line without end")
            self._read_on()
        found, _, self._buffer = self._buffer.partition(mark)
        return found

    def exactly(self, length: int) -> bytes:
        if not 0 <= length <= _LARGEST_BODY:
            raise ValueError(f"a length of {length}")
        while len(self._buffer) < length:
            self._read_on()
        found, self._buffer = self._buffer[:length], self._buffer[length:]
        return found

    def chunks(self) -> bytes:
        body = b""
        while chunk := self._chunk():
            body += chunk
            if len(body) > _LARGEST_BODY:
                raise ValueError("a body without end")
        return body

    def rest(self) -> bytes:
        while data := self._receive():
            self._buffer += data
            if len(self._buffer) > _LARGEST_BODY:
                raise ValueError("a body without end")
        return self._buffer

    def _chunk(self) -> bytes:
        size = self.until(b"\r\n", _LARGEST_HEAD).split(b";")[0]
        data = self.exactly(int(size, 16))
        self.until(b"\r\n", 2)
        return data

    def _read_on(self) -> None:
        data = self._receive()
        if not data:
            raise ConnectionResetError("closed before the answer was whole")
        self._buffer += data

    def _receive(self) -> bytes:
        self._connection.settimeout(_timeout(self._deadline))
        return self._connection.recv(65536)
