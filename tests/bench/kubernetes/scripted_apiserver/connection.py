"""Client connection: the subset of HTTP/1.1 that the manager uses. A framework would dominate the cost."""

import asyncio
import re
from urllib.parse import parse_qs

from tests.bench.kubernetes.scripted_apiserver.server import Request, Response, Server, Stream

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_HEAD = b"HTTP/1.1 %d -\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
_MAX_CHUNK = 65_536


class Connection(asyncio.Protocol):
    """Answers requests one after the other, or streams changes until the client disconnects."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._stream: Stream | None = None
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, _error: Exception | None) -> None:
        if self._stream is not None:
            self._stream.log.listeners.discard(self._pump)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._pump()

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._received += data
        while (request := self._next_request()) is not None:
            response = self._server.respond(request)
            if isinstance(response, Response):
                self._transport.write(_HEAD % (response.status, len(response.body)) + response.body)
            else:
                self._transport.write(_STREAM_HEAD)
                self._stream = response
                response.log.listeners.add(self._pump)
                self._pump()

    def _next_request(self) -> Request | None:
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self._received[: end + 2])
        found = _LENGTH.search(head)
        whole = end + 4 + (int(found[1]) if found else 0)
        if len(self._received) < whole:
            return None
        body = bytes(self._received[end + 4 : whole])
        del self._received[:whole]
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        path, _, query = target.partition("?")
        return Request(method, path, {key: values[0] for key, values in parse_qs(query).items()}, body)

    def _pump(self) -> None:
        """Sends new changes as fast as the client reads them."""
        assert self._transport is not None
        assert self._stream is not None
        while not self._paused and (lines := self._stream.lines(_MAX_CHUNK)):
            self._transport.write(b"%x\r\n%b\r\n" % (len(lines), lines))
