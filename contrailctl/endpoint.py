"""HTTP GET requests with one deadline for the whole exchange, and streams of lines."""

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from contrailctl.errors import ContrailctlError, NotFoundError, ResponseError, UnreachableError, UsageError

_CHUNK = 1 << 16
_MAX_LINE = 1 << 26  # bytes; a pod with 256 interfaces has a few hundred thousand


class Endpoint(NamedTuple):
    """A server; `timeout` is the limit for one request in seconds, `token` what is sent to it, if it requires one."""

    url: str
    timeout: float
    token: str = ""

    def get(self, path: str, query: Mapping[str, str | None] | None = None) -> bytes:
        """Returns the response body; query keys with the value None are omitted.

        Raises UsageError (URL), UnreachableError, NotFoundError (404), ResponseError (other error statuses).
        """
        status, body = self.request(path, query)
        if status == http.HTTPStatus.OK:
            return body
        raise self._failure(path, status, body)

    def request(self, path: str, query: Mapping[str, str | None] | None = None) -> tuple[int, bytes]:
        """Returns status and body of the response. Raises UsageError, UnreachableError."""
        connection = self._connection()
        try:
            with self._unreachable_errors(self.timeout):
                headers = {"Accept": "application/json", **self._authorization()}
                return _exchange(connection, self._target(path, query), time.monotonic() + self.timeout, headers)
        finally:
            connection.close()

    def lines(
        self, path: str, query: Mapping[str, str | None], headers: Mapping[str, str], *, silence: float
    ) -> Iterator[bytes]:
        """Yields the lines of a response without an end, each with its line break, until the server ends it.

        `silence`: seconds without a byte after which the server counts as lost. Raises as `get`.
        """
        connection = self._connection()
        try:
            with self._unreachable_errors(self.timeout):
                deadline = time.monotonic() + self.timeout
                sent = {**headers, **self._authorization()}
                response, sock = _opened(connection, self._target(path, query), deadline, sent)
                body = b"" if response.status == http.HTTPStatus.OK else _read(response, sock, deadline)
            if response.status != http.HTTPStatus.OK:
                raise self._failure(path, response.status, body)
            sock.settimeout(silence)
            while True:
                with self._unreachable_errors(silence):
                    line = response.readline(_MAX_LINE)
                if not line.endswith(b"\n"):  # the end, perhaps in the middle of a line
                    return
                yield line
        finally:
            connection.close()

    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def _target(self, path: str, query: Mapping[str, str | None] | None) -> str:
        parameters = {key: value for key, value in (query or {}).items() if value is not None}
        return urlsplit(self.url).path.rstrip("/") + quote(path) + (f"?{urlencode(parameters)}" if parameters else "")

    def _failure(self, path: str, status: int, body: bytes) -> ContrailctlError:
        message = f"{self.url}{path}: {_error_text(body) or http.client.responses.get(status, 'unknown status')}"
        if status == http.HTTPStatus.NOT_FOUND:
            return NotFoundError(message)
        return ResponseError(f"{message} (status {status})")

    @contextlib.contextmanager
    def _unreachable_errors(self, seconds: float) -> Iterator[None]:
        """Raises UnreachableError for what goes wrong on the way; `seconds`: the timeout."""
        try:
            yield
        except TimeoutError as error:
            raise UnreachableError(f"{self.url}: timed out after {seconds:g} s") from error
        except OSError as error:
            raise UnreachableError(f"{self.url}: {error.strerror or error}") from error
        except http.client.HTTPException as error:
            raise UnreachableError(f"{self.url}: not an HTTP response: {error!r}") from error

    def _connection(self) -> http.client.HTTPConnection:
        try:
            parts = urlsplit(self.url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise UsageError(f"{self.url}: {error}") from error
        # Unix sockets and TLS are not supported.
        if parts.scheme != "http" or not host:
            raise UsageError(f"{self.url}: must be http://HOST:PORT")
        return http.client.HTTPConnection(host, port, timeout=self.timeout)


def _exchange(
    connection: http.client.HTTPConnection, target: str, deadline: float, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    response, sock = _opened(connection, target, deadline, headers)
    return response.status, _read(response, sock, deadline)


def _opened(
    connection: http.client.HTTPConnection, target: str, deadline: float, headers: Mapping[str, str]
) -> tuple[http.client.HTTPResponse, socket.socket]:
    """Sends the request and returns the response, whose body is not read yet."""
    connection.connect()
    sock = connection.sock
    connection.request("GET", target, headers=dict(headers))
    # A socket timeout limits a single read, so it is shortened before each one.
    sock.settimeout(_remaining(deadline))
    return connection.getresponse(), sock


def _read(response: http.client.HTTPResponse, sock: socket.socket, deadline: float) -> bytes:
    body = bytearray()
    # read1() returns what has arrived; read() would wait for a full chunk.
    while chunk := response.read1(_CHUNK):
        body += chunk
        sock.settimeout(_remaining(deadline))
    return bytes(body)


def _remaining(deadline: float) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    return remaining


class _Error(msgspec.Struct):
    error: str


def _error_text(body: bytes) -> str:
    try:
        return " ".join(msgspec.json.decode(body, type=_Error).error.split())
    except msgspec.DecodeError:
        return ""
