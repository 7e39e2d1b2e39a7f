"""HTTP client: one request and its response, over TCP or a Unix socket, within a deadline.

Why not `http.client`: importing it, with the email and ssl packages behind it, takes longer than the rest of an ADD,
and its timeouts apply to single reads, so an agent that sends a byte at a time would never time out. This client
supports what agents send: interim responses, which are skipped, a status line, headers, and a body by length, in
chunks, or up to the end of the stream.

Sending a request and reading its response are two steps, so that the agent works while the caller does other things.
"""

from __future__ import annotations

import socket

from cni_contrail.agent.connections import NONBLOCKING, Endpoint, connect, idle_connections, send
from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, PluginError, UnreachableError
from cni_contrail.link.named_tuple import NamedTuple

__all__ = ["Endpoint", "HttpExchange", "HttpResponse"]

_MAX_HEAD = 64 * 1024  # bytes
_MAX_BODY = 4 * 1024 * 1024
_REST = 1.0  # seconds for the rest of a response that has begun
_INTERIM = range(100, 200)  # statuses before the final one, which an agent or a proxy may send unasked
_WITHOUT_BODY = (204, 304)


class HttpResponse(NamedTuple):
    """Status and body of a response."""

    status: int
    body: bytes


class HttpExchange:
    """A request, sent at construction, and its response. The caller calls `response` or `close` once.

    `response` also raises the errors of sending. The deadline covers both. Requests are idempotent and are resent once
    if the agent had closed the kept-alive connection. The body of a response has at most `max_body` bytes.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        method: str,
        target: str,
        body: bytes,
        deadline: Deadline,
        *,
        max_body: int = _MAX_BODY,
    ) -> None:
        self.method = method
        self.path = target.partition("?")[0]
        self._endpoint = endpoint
        self._request = _request(endpoint, method, target, body)
        self._deadline = deadline
        self._max_body = max_body
        self._connection = idle_connections.take(endpoint)
        self._is_reused = self._connection is not None
        self._failure: OSError | None = None
        self._send()

    def responds_within(self, seconds: float) -> bool:
        """Returns whether the response begins, or the request fails, in time; the rest must then follow within 1 s."""
        if self._connection is None:
            return True  # sending failed: `response` raises the error without waiting
        try:
            Deadline(seconds).wait_readable(self._connection.fileno())
        except TimeoutError:
            return False
        self._deadline = Deadline(_REST)
        return True

    def response(self) -> HttpResponse:
        """Reads the response.

        Raises `UnreachableError` if none arrives in time, `PluginError` with code 100 if it is not HTTP.
        """
        try:
            return self._receive_or_resend()
        except OSError as error:
            timed_out = isinstance(error, TimeoutError)
            reason = "timed out waiting for a response" if timed_out else error.strerror or str(error)
            message = f"agent unreachable at {self._endpoint}: {reason}"
            raise UnreachableError(message, was_sent=self._failure is None) from error

    def close(self) -> None:
        """Closes the connection without reading the response."""
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

    def _receive_or_resend(self) -> HttpResponse:
        try:
            return self._receive()
        except ConnectionError:
            if not self._is_reused:  # a new connection: the failure is the agent's
                raise
        self._is_reused, self._failure = False, None
        self._send()
        return self._receive()

    def _receive(self) -> HttpResponse:
        if self._failure is not None:
            raise self._failure
        assert self._connection is not None
        stream = _Stream(self._connection, self._deadline, self._max_body)
        try:
            response = _read_response(stream, self._endpoint)
            # Data behind the response would be taken as the response to the next request.
            if stream.is_ready:
                idle_connections.keep(self._endpoint, self._connection)
                self._connection = None
        finally:
            self.close()
        return response


def _request(endpoint: Endpoint, method: str, target: str, body: bytes) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {endpoint.host_header}"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _read_response(stream: _Stream, endpoint: Endpoint) -> HttpResponse:
    try:
        head = _read_head(stream)
        while head.status in _INTERIM:
            head = _read_head(stream)
        # HTTP/1.0 closes the connection after each response, HTTP/1.1 only if a header says so.
        if head.version != "HTTP/1.1" or head.headers.get("connection", "").lower() == "close":
            stream.is_last = True
        return HttpResponse(head.status, _read_body(stream, head))
    except ValueError as error:
        raise PluginError(Code.BAD_AGENT_RESPONSE, f"agent at {endpoint}: the response is not HTTP: {error}") from error


class _Head(NamedTuple):
    """Status line and headers, their names in lower case."""

    version: str
    status: int
    headers: dict[str, str]


def _read_head(stream: _Stream) -> _Head:
    status_line, *header_lines = stream.until(b"\r\n\r\n", _MAX_HEAD).decode("latin-1").split("\r\n")
    version, status, *_ = status_line.split(" ", 2)
    pairs = [line.partition(":") for line in header_lines]
    return _Head(version, int(status), {name.strip().lower(): value.strip() for name, _, value in pairs})


def _read_body(stream: _Stream, head: _Head) -> bytes:
    if head.status in _WITHOUT_BODY:  # whatever its headers say
        return b""
    # Chunked takes precedence over a length (RFC 9112, section 6.3); with neither, the end of the stream ends the body.
    if head.headers.get("transfer-encoding", "").lower() == "chunked":
        return stream.chunks()
    if "content-length" in head.headers:
        return stream.exactly(int(head.headers["content-length"]))
    return stream.rest()


class _Stream:
    """Reads from a connection until the deadline. Raises `ValueError` for malformed or oversized data."""

    def __init__(self, connection: socket.socket, deadline: Deadline, max_body: int) -> None:
        self._connection = connection
        self._deadline = deadline
        self._max_body = max_body
        self._buffer = b""
        self.is_last = False  # the agent closes the connection after this response

    @property
    def is_ready(self) -> bool:
        """Whether the connection can carry another request."""
        return not self.is_last and not self._buffer

    def until(self, mark: bytes, limit: int) -> bytes:
        while mark not in self._buffer:
            if len(self._buffer) > limit:
                raise ValueError("line too long")
            self._read_on()
        found, _, self._buffer = self._buffer.partition(mark)
        return found

    def exactly(self, length: int) -> bytes:
        if not 0 <= length <= self._max_body:
            raise ValueError(f"invalid length {length}")
        while len(self._buffer) < length:
            self._read_on()
        found, self._buffer = self._buffer[:length], self._buffer[length:]
        return found

    def chunks(self) -> bytes:
        body = b""
        while chunk := self._chunk():
            body += chunk
            if len(body) > self._max_body:
                raise ValueError("body too long")
        return body

    def rest(self) -> bytes:
        self.is_last = True
        while data := self._receive():
            self._buffer += data
            if len(self._buffer) > self._max_body:
                raise ValueError("body too long")
        return self._buffer

    def _chunk(self) -> bytes:
        size = self.until(b"\r\n", _MAX_HEAD).split(b";")[0]  # without chunk extensions
        data = self.exactly(int(size, 16))  # size 0 ends the body
        self.until(b"\r\n", 2)
        return data

    def _read_on(self) -> None:
        data = self._receive()
        if not data:
            raise ConnectionResetError("closed before the end of the response")
        self._buffer += data

    def _receive(self) -> bytes:
        return self._deadline.read_when_readable(self._connection.fileno(), self._receive_available)

    def _receive_available(self) -> bytes:
        return self._connection.recv(65536, NONBLOCKING)
