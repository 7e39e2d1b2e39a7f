"""HTTP runner of all listeners: a timeout for every state in which a client holds a connection, and a maximum number.

aiohttp by itself answers malformed HTTP in plain text and logs a traceback, waits up to an hour for the rest of a
request head, waits without limit for a client that does not read its response, and accepts any number of connections.
Here:

- A request head must be complete `HEAD_TIMEOUT` after its first byte, else it is answered with 408. A connection that
  sends nothing within this time is closed, and so is one whose client does not read its response or keeps sending a
  body that no handler reads. A response counts as read when nothing of it is left in this process: the loop would keep
  a connection that was closed, and its file, until then.
- A connection without a further request is closed after `IDLE_TIMEOUT`.
- Above `MAX_CONNECTIONS`, the oldest connections without a request, including those with an incomplete head, are
  closed, whatever they have not read. If every connection has a request, a new one is taken from a reserve: it is
  served a single request for `/healthz` or `/readyz`, and 503 for anything else, so that busy connections never make a
  probe fail. A full reserve closes its oldest connection.
- The bounds of a process's listeners together are less than its limit of open files, so that no listener takes the
  files of another one.

A request that the fast path answers on an idle connection does not reach aiohttp; the same limits apply.

Handlers limit the time for a body themselves, and requests that wait state their own. Errors are JSON, as everywhere.
Whatever clients send is logged without a traceback and only at debug level.

aiohttp has no public API for "this connection has no request" and for a server class of one's own, so this module uses
`RequestHandler._waiter` and overrides `AppRunner._make_server`. The aiohttp version is capped in pyproject.toml, and
tests/agent_api/test_connections_aiohttp_internals.py fails when they change.
"""

import asyncio
import logging
import resource
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Protocol, cast

import msgspec
from aiohttp import web
from aiohttp.http import HttpProcessingError

from contrail_service.pages import HEALTH_PATHS, JSON_CONTENT_TYPE, errors_as_json

log = logging.getLogger(__name__)

HEAD_TIMEOUT = 10.0
"""Seconds to receive a request head, and to read a response."""

IDLE_TIMEOUT = 75.0
"""Seconds after which a connection without a request is closed."""

MAX_CONNECTIONS = 4096
"""Connections of one runner; fewer if the process may not open four times as many files."""

MAX_RESERVE = 64
"""Connections of one runner's reserve; fewer if `MAX_CONNECTIONS` is."""

MALFORMED_REQUEST_ERRORS = (HttpProcessingError, web.RequestPayloadError)
"""What aiohttp raises if a client violates HTTP."""


class FastPathHandler(Protocol):
    """Answers some requests straight from the received bytes."""

    def handle(self, data: bytes, write: Callable[[bytes], None]) -> bool:
        """Returns whether `data` was one whole request, whose response was written then."""

    def is_whole_request(self, data: bytes) -> bool:
        """Returns whether `data` is known to be exactly one whole request."""


_OPTIONS: dict[str, Any] = {
    "access_log": None,
    "auto_decompress": False,  # no client compresses, and a small body could expand to a large one
    "keepalive_timeout": IDLE_TIMEOUT,
    "max_field_size": 4096,  # bytes of one header; aiohttp allows 128 headers
    "read_bufsize": 16 * 1024,  # bytes of a body that are buffered before a handler reads it
}


class BoundedRunner(web.AppRunner):
    """Serves an application within these limits and cancels a handler when its client disconnects.

    `head_timeout` and `shutdown_timeout` are in seconds.
    """

    def __init__(
        self,
        application: web.Application,
        *,
        fast_path: FastPathHandler | None = None,
        shutdown_timeout: float,
        head_timeout: float = HEAD_TIMEOUT,
        max_connections: int | None = None,
    ) -> None:
        super().__init__(application, handler_cancellation=True, shutdown_timeout=shutdown_timeout)
        self._fast_path = fast_path
        self._head_timeout = head_timeout
        self._max_connections = max_connections or connection_limit()

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        return _BoundedServer(
            server,
            fast_path=self._fast_path,
            head_timeout=self._head_timeout,
            max_connections=self._max_connections,
        )


class _BoundedServer(web.Server):
    """Serves the requests of another server on connections with timeouts, and limits their number."""

    def __init__(
        self, server: web.Server, *, fast_path: FastPathHandler | None, head_timeout: float, max_connections: int
    ) -> None:
        super().__init__(
            self._handle, request_factory=server.request_factory, handler_cancellation=server.handler_cancellation
        )
        self._served = server
        self._fast_path = fast_path
        self._head_timeout = head_timeout
        self._max_connections = max_connections
        self._max_reserve = min(MAX_RESERVE, max_connections // 8 + 1)
        self._open: dict[_Connection, None] = {}  # an ordered set, oldest first
        self._reserve: dict[_Connection, None] = {}  # likewise; no connection is in both

    def __call__(self) -> web.RequestHandler:
        loop = asyncio.get_running_loop()
        return _Connection(self, loop=loop, fast_path=self._fast_path, head_timeout=self._head_timeout)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        newest = cast(_Connection, handler)
        if len(self._open) < self._max_connections or self._evict_idle():
            self._open[newest] = None
        else:
            self._add_to_reserve(newest)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        for connections in (self._open, self._reserve):
            connections.pop(cast(_Connection, handler), None)

    def _evict_idle(self) -> bool:
        """Closes an eighth of the connections at once, so that not every further connection searches for idle ones.

        Returns whether there were any.
        """
        idle = [connection for connection in self._open if connection.is_idle]
        for connection in idle[: self._max_connections // 8 + 1]:
            del self._open[connection]
            connection.abort()
        return bool(idle)

    def _add_to_reserve(self, newest: "_Connection") -> None:
        newest.in_reserve = True
        self._reserve[newest] = None
        if len(self._reserve) > self._max_reserve:
            # A probe is answered at once, so the oldest connection has had its time.
            oldest = next(iter(self._reserve))
            del self._reserve[oldest]
            oldest.abort()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = cast(_Connection, request.protocol)
        if not connection.in_reserve:
            return await self._respond(request)
        # aiohttp would wait for the rest of a body, and so keep a connection of the reserve busy.
        if request.path not in HEALTH_PATHS or request.can_read_body:
            text = f"too many connections: limit is {self._max_connections}, all busy; retry later"
            connection.reject(HTTPStatus.SERVICE_UNAVAILABLE, text)
            return web.Response()  # not sent: the connection is closed
        response = await self._respond(request)
        response.force_close()
        return response

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        return await errors_as_json(cast(web.Request, request), self._served.request_handler)


class _Timer:
    """A timer that is started and cancelled as often as a connection's state changes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self._seconds = seconds
        self._due = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def start(self, callback: Callable[[], None]) -> None:
        """Starts the timer unless it is running; `callback` runs unless it is cancelled in time."""
        if self._handle is None:
            self.restart(callback)

    def restart(self, callback: Callable[[], None]) -> None:
        """Starts the timer or extends it.

        An extension only moves the due time, which the running handle checks: cheaper than a new handle per request.
        """
        self._due = self._loop.time() + self._seconds
        if self._handle is None:
            self._handle = self._loop.call_at(self._due, self._fire, callback)

    def cancel(self) -> None:
        """Cancels the timer. Idempotent."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self, callback: Callable[[], None]) -> None:
        self._handle = None
        if self._loop.time() < self._due:
            self._handle = self._loop.call_at(self._due, self._fire, callback)
        else:
            callback()


class _Connection(web.RequestHandler):
    __slots__ = (
        "_at_boundary",
        "_fast_path",
        "_head_started",
        "_head_timeout",
        "_head_timer",
        "_idle_timer",
        "_opened",
        "_write_timer",
        "in_reserve",
    )

    def __init__(
        self,
        server: web.Server,
        *,
        loop: asyncio.AbstractEventLoop,
        fast_path: FastPathHandler | None,
        head_timeout: float,
    ) -> None:
        super().__init__(server, loop=loop, lingering_time=head_timeout, **_OPTIONS)
        self.in_reserve = False
        self._fast_path = fast_path
        self._head_timeout = head_timeout
        self._at_boundary = True  # all earlier bytes were whole requests, so that aiohttp's parser holds no part of one
        self._head_started = False
        self._head_timer = _Timer(loop, head_timeout)
        self._write_timer = _Timer(loop, head_timeout)
        self._idle_timer = _Timer(loop, IDLE_TIMEOUT)  # after a fast-path response; after others aiohttp has its own

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress; a head may be incomplete."""
        return self._waiter is not None and not self._waiter.done()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._opened = cast(asyncio.Transport, transport)  # aiohttp forgets its own when it closes it
        self._opened.set_write_buffer_limits(high=0)  # so that the timeout runs for any byte that is not read
        self._head_timer.start(self._on_head_timeout)

    def data_received(self, data: bytes) -> None:
        if self._answered_by_fast_path(data):
            self._head_timer.cancel()
            self.keep_alive(val=True)  # cancels aiohttp's own idle timer, which the fast path would not extend
            self._idle_timer.restart(self.force_close)
            return
        self._idle_timer.cancel()
        if self._at_boundary:
            self._at_boundary = self._fast_path is not None and self._fast_path.is_whole_request(data)
        super().data_received(data)
        if not self.is_idle:
            self._head_started = False
            self._head_timer.cancel()
        elif data:
            self._head_started = True
            self._head_timer.start(self._on_head_timeout)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer.start(self._on_write_timeout)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._write_timer.cancel()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        for timer in (self._head_timer, self._write_timer, self._idle_timer):
            timer.cancel()

    def abort(self) -> None:
        """Closes the connection at once, also if a part of a response was not read."""
        self._opened.abort()

    def reject(self, status: HTTPStatus, text: str) -> None:
        """Answers without looking at any request, and closes the connection."""
        log.debug("%s: %s", self.peername, text)
        if self.transport is not None:
            body = msgspec.json.encode({"error": text})
            head = f"HTTP/1.1 {status} {status.phrase}\r\nContent-Type: {JSON_CONTENT_TYPE}\r\nConnection: close\r\n"
            self.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        log.debug("%s: %s", self.peername, exc)
        # aiohttp appends the offending input, with a caret below it, in further lines.
        reason = exc.message.partition("\n")[0].rstrip(": ")
        body = msgspec.json.encode({"error": f"request: malformed HTTP: {reason[:200]}"})
        response = web.Response(status=status, body=body, headers={"Content-Type": JSON_CONTENT_TYPE})
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kw: Any) -> None:
        if isinstance(kw.get("exc_info"), MALFORMED_REQUEST_ERRORS):
            log.debug("%s: %s", self.peername, kw["exc_info"])
        else:
            super().log_exception(*args, **kw)

    def _answered_by_fast_path(self, data: bytes) -> bool:
        if self._fast_path is None or self.in_reserve:
            return False
        # Only with no earlier bytes to parse and no response to wait for: responses must stay in order.
        if not self._at_boundary or not self.is_idle or self.writing_paused or self.transport is None:
            return False
        return self._fast_path.handle(data, self.transport.write)

    def _on_head_timeout(self) -> None:
        if self._head_started:
            self.reject(HTTPStatus.REQUEST_TIMEOUT, f"request head: timed out after {self._head_timeout:g} s")
        else:
            self.force_close()

    def _on_write_timeout(self) -> None:
        log.debug("%s: response not read within %g s", self.peername, self._head_timeout)
        self.abort()


def connection_limit() -> int:
    """Returns the number of connections of one runner that the process's file limit allows."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if files == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, files // 4)
