"""One HTTP request and its answer, over TCP or a Unix socket, within a deadline.

Why not `http.client`: importing it, with the email and ssl packages behind it, takes longer than all the rest of an
ADD, and its timeouts hold for single reads, so that an agent that answers a byte at a time is waited for without end.
This speaks just what agents answer: a status line, headers, and a body by length, in chunks, or up to the end.

A request and its answer are two steps, so that the agent works while the caller does something else.
"""

from __future__ import annotations

import socket

from cni_contrail.agent.connections import NONBLOCKING, Endpoint, connect, idle_connections, send
from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, PluginError, UnreachableError
from cni_contrail.link.named_tuple import NamedTuple

__all__ = ["Endpoint", "HttpExchange", "HttpResponse"]

_LARGEST_HEAD = 64 * 1024
_LARGEST_BODY = 4 * 1024 * 1024
_REST = 1.0  # seconds


class HttpResponse(NamedTuple):
    """Status and body of an answer."""

    status: int
    body: bytes


class HttpExchange:
    """A request on its way: the agent works on it until its `answer` is wanted.

    `answer` or `close` is called once. What keeps the request from being sent is told by `answer`. The deadline is for
    both. Each request of the plugin may be sent twice without harm, and is where the agent had closed the connection.
    """

    def __init__(self, endpoint: Endpoint, method: str, target: str, body: bytes, deadline: Deadline) -> None:
        self.method = method
        self.path = target.partition("?")[0]
        self._endpoint = endpoint
        self._request = _request(endpoint, method, target, body)
        self._deadline = deadline
        self._connection = idle_connections.take(endpoint)
        self._is_used = self._connection is not None
        self._failure: OSError | None = None
        self._send()

    def responds_within(self, seconds: float) -> bool:
        """Whether the answer begins so soon, or fails; its rest has a second then, for `answer` to read."""
        if self._connection is None:
            return True
        try:
            Deadline(seconds).await_readable(self._connection.fileno())
        except TimeoutError:
            return False
        self._deadline = Deadline(_REST)
        return True

    def answer(self) -> HttpResponse:
        """Reads the answer.

        Raises `UnreachableError` if nobody answers in time, `PluginError` with code 100 if what answers is not HTTP.
        """
        try:
            return self._received()
        except OSError as error:
            reason = "no answer in time" if isinstance(error, TimeoutError) else error.strerror or str(error)
            raise UnreachableError(f"agent unreachable at {self._endpoint}: {reason}") from error

    def close(self) -> None:
        """Hangs up: nobody wants the answer."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self) -> None:
        try:
            if self._connection is None:
                self._connection = connect(self._endpoint, self._deadline)
            send(self._connection, self._request, self._deadline)
        except OSError as error:
            self._failure = error
            self.close()

    def _received(self) -> HttpResponse:
        try:
            return self._receive()
        except ConnectionError:
            if not self._is_used:
                raise
        self._is_used, self._failure = False, None
        self._send()
        return self._receive()

    def _receive(self) -> HttpResponse:
        if self._failure is not None:
            raise self._failure
        assert self._connection is not None
        stream = _Stream(self._connection, self._deadline)
        try:
            answer = _read_answer(stream, self._endpoint)
            if stream.is_ready:
                idle_connections.keep(self._endpoint, self._connection)
                self._connection = None
        finally:
            self.close()
        return answer


def _request(endpoint: Endpoint, method: str, target: str, body: bytes) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {endpoint.host_header}"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _read_answer(stream: _Stream, endpoint: Endpoint) -> HttpResponse:
    try:
        status_line, *header_lines = stream.until(b"\r\n\r\n", _LARGEST_HEAD).decode("latin-1").split("\r\n")
        version, status, *_ = status_line.split(" ", 2)
        pairs = (line.partition(":") for line in header_lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        if version != "HTTP/1.1" or headers.get("connection", "").lower() == "close":
            stream.is_last = True
        return HttpResponse(int(status), _read_body(stream, headers))
    except ValueError as error:
        raise PluginError(
            Code.BAD_AGENT_RESPONSE, f"what answers at {endpoint} does not speak HTTP: {error}"
        ) from error


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
        self.is_last = False  # nothing comes behind this answer

    @property
    def is_ready(self) -> bool:
        """Whether another request may follow on the connection."""
        return not self.is_last and not self._buffer

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
        self.is_last = True
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
        return self._deadline.when_readable(self._connection.fileno(), self._receive_what_is_there)

    def _receive_what_is_there(self) -> bytes:
        return self._connection.recv(65536, NONBLOCKING)
