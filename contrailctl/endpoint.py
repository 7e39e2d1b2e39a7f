"""HTTP GET requests with one deadline for the whole exchange."""

import http.client
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from contrailctl.errors import NotFoundError, ResponseError, UnreachableError, UsageError

_CHUNK = 1 << 16


class Endpoint(NamedTuple):
    """A server; `timeout` is the limit for one request in seconds."""

    url: str
    timeout: float

    def get(self, path: str, query: Mapping[str, str | None] | None = None) -> bytes:
        """Returns the response body; query keys with the value None are omitted.

        Raises UsageError (URL), UnreachableError, NotFoundError (404), ResponseError (other error statuses).
        """
        status, body = self.request(path, query)
        if status == http.HTTPStatus.OK:
            return body
        message = f"{self.url}{path}: {_error_text(body) or http.client.responses.get(status, 'unknown status')}"
        if status == http.HTTPStatus.NOT_FOUND:
            raise NotFoundError(message)
        raise ResponseError(f"{message} (status {status})")

    def request(self, path: str, query: Mapping[str, str | None] | None = None) -> tuple[int, bytes]:
        """Returns status and body of the response. Raises UsageError, UnreachableError."""
        connection = self._connection()
        parameters = {key: value for key, value in (query or {}).items() if value is not None}
        target = urlsplit(self.url).path.rstrip("/") + quote(path) + (f"?{urlencode(parameters)}" if parameters else "")
        try:
            return _exchange(connection, target, time.monotonic() + self.timeout)
        except TimeoutError as error:
            raise UnreachableError(f"{self.url}: timed out after {self.timeout:g} s") from error
        except OSError as error:
            raise UnreachableError(f"{self.url}: {error.strerror or error}") from error
        except http.client.HTTPException as error:
            raise UnreachableError(f"{self.url}: not an HTTP response: {error!r}") from error
        finally:
            connection.close()

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


def _exchange(connection: http.client.HTTPConnection, target: str, deadline: float) -> tuple[int, bytes]:
    connection.connect()
    sock = connection.sock
    connection.request("GET", target, headers={"Accept": "application/json"})
    # A socket timeout limits a single read, so it is shortened before each one.
    sock.settimeout(_remaining(deadline))
    response = connection.getresponse()
    body = bytearray()
    # read1() returns what has arrived; read() would wait for a full chunk.
    while chunk := response.read1(_CHUNK):
        body += chunk
        sock.settimeout(_remaining(deadline))
    return response.status, bytes(body)


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
