"""Bounds on what a connection may cost: deadlines for every state in which a client can hold it, and their number.

aiohttp by itself answers what is no HTTP in plain text, with a trace in the log, waits for an hour for the rest of a
head, for ever for a client that reads no answer, and takes as many connections as come. Here:

- a head must be whole `HEAD_DEADLINE` after its first byte, else it is answered with 408; a connection on which
  nothing came in this time is closed, and so is one whose client does not read its answer, or goes on with a body
  that nobody wants;
- a connection that had a request and has none any more is closed after `IDLE`;
- of more connections than `MOST_CONNECTIONS` the oldest that have no request are closed, those with half a head among
  them; if all have one, the newest is answered with 503.

What `direct` answers of a connection that has nothing else to do never comes to aiohttp, and has the same bounds.

Bodies have a deadline of their own (`bodies`), and requests that wait say themselves how long. What is refused here is
JSON, as everywhere. Whatever clients send, the log tells of it without a trace, and only where debugging is on.
"""

import asyncio
import logging
import resource
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import msgspec
from aiohttp import web
from aiohttp.http import HttpProcessingError

from agent_api.middlewares import UPSTREAM_JSON
from agent_api.request_bodies import MALFORMED
from contrail_service.pages import errors_as_json

log = logging.getLogger(__name__)

HEAD_DEADLINE = 10.0
"""Seconds in which a head must come, and in which an answer must be read."""

IDLE = 75.0
"""Seconds after which a connection without a request is closed."""

MOST_CONNECTIONS = 4096
"""Connections of one runner; fewer where the process may not open four times as many files."""

Direct = Callable[[bytes, Callable[[bytes], None]], bool]
"""Is given what came and how to write, and tells whether it was one whole request, whose answer it wrote."""

_OPTIONS: dict[str, Any] = {
    "access_log": None,
    "auto_decompress": False,  # no client compresses, and a small body may become a large one
    "keepalive_timeout": IDLE,
    "max_field_size": 4096,  # bytes of a header, of which there are 128 at most
    "read_bufsize": 16 * 1024,  # bytes of a body that nobody reads yet
}


class BoundedRunner(web.AppRunner):
    """Serves an application within bounds; a request that waits is forgotten when its client hangs up."""

    def __init__(
        self,
        application: web.Application,
        *,
        direct: Direct,
        shutdown_timeout: float,
        deadline: float = HEAD_DEADLINE,
        most: int | None = None,
    ) -> None:
        super().__init__(application, handler_cancellation=True, shutdown_timeout=shutdown_timeout)
        self._direct = direct
        self._deadline = deadline
        self._most = most or bearable_connections()

    async def _make_server(self) -> web.Server:
        plain = await super()._make_server()
        return _BoundedServer(plain, direct=self._direct, deadline=self._deadline, most=self._most)


class _BoundedServer(web.Server):
    """Makes connections that have deadlines, for what a plain server serves, and bounds their number."""

    def __init__(self, plain: web.Server, *, direct: Direct, deadline: float, most: int) -> None:
        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            return await errors_as_json(cast(web.Request, request), plain.request_handler)

        super().__init__(answer, request_factory=plain.request_factory, handler_cancellation=plain.handler_cancellation)
        self._direct = direct
        self._deadline = deadline
        self._most = most
        self._open: dict[_Connection, None] = {}  # the oldest first

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=asyncio.get_running_loop(), direct=self._direct, deadline=self._deadline)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        newest = cast(_Connection, handler)
        self._open[newest] = None
        if len(self._open) > self._most:
            self._make_room(newest)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._open.pop(cast(_Connection, handler), None)

    def _make_room(self, newest: "_Connection") -> None:
        """Closes some of the oldest at once, so that they need not be looked for at every further connection."""
        without_request = [each for each in self._open if each.has_no_request and each is not newest]
        for connection in without_request[: self._most // 8 + 1]:
            del self._open[connection]
            connection.force_close()
        if not without_request:
            del self._open[newest]
            newest.refuse(HTTPStatus.SERVICE_UNAVAILABLE, f"{self._most} connections are busy; try again")


class _Deadline:
    """A deadline that begins and ends as often as a connection's state changes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self._seconds = seconds
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, passed: Callable[[], None]) -> None:
        """Begins, if it has not begun already; `passed` is called unless it is ended in time."""
        if self._timer is None:
            self.begin_anew(passed)

    def begin_anew(self, passed: Callable[[], None]) -> None:
        """Begins, or is put off: its timer finds that out in time, which costs less than another timer each time."""
        self._due = self._loop.time() + self._seconds
        if self._timer is None:
            self._timer = self._loop.call_at(self._due, self._pass, passed)

    def end(self) -> None:
        """Ends it, whether it has begun or not."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _pass(self, passed: Callable[[], None]) -> None:
        self._timer = None
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._pass, passed)
        else:
            passed()


class _Connection(web.RequestHandler):
    __slots__ = ("_direct", "_for_answer", "_for_head", "_for_next", "_head_began", "_seconds")

    def __init__(self, server: web.Server, *, loop: asyncio.AbstractEventLoop, direct: Direct, deadline: float) -> None:
        super().__init__(server, loop=loop, lingering_time=deadline, **_OPTIONS)
        self._direct = direct
        self._seconds = deadline
        self._head_began = False
        self._for_head = _Deadline(loop, deadline)
        self._for_answer = _Deadline(loop, deadline)
        self._for_next = _Deadline(loop, IDLE)  # behind a direct answer; behind others aiohttp has one

    @property
    def has_no_request(self) -> bool:
        """Whether it waits for a whole head."""
        return self._waiter is not None and not self._waiter.done()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._for_head.begin(self._head_is_late)

    def data_received(self, data: bytes) -> None:
        if self._answered_directly(data):
            self._for_head.end()
            self.keep_alive(val=True)  # ends aiohttp's deadline
            self._for_next.begin_anew(self.force_close)
            return
        self._for_next.end()
        super().data_received(data)
        if not self.has_no_request:
            self._head_began = False
            self._for_head.end()
        elif data:
            self._head_began = True
            self._for_head.begin(self._head_is_late)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._for_answer.begin(self._answer_is_not_read)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._for_answer.end()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        for deadline in (self._for_head, self._for_answer, self._for_next):
            deadline.end()

    def refuse(self, status: HTTPStatus, text: str) -> None:
        """Answers without looking at any request, and closes."""
        log.debug("%s: %s", self.peername, text)
        if self.transport is not None:
            body = msgspec.json.encode({"error": text})
            head = f"HTTP/1.1 {status} {status.phrase}\r\nContent-Type: {UPSTREAM_JSON}\r\nConnection: close\r\n"
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
        reason = exc.message.partition("\n")[0].rstrip(": ")
        body = msgspec.json.encode({"error": f"the request is malformed: {reason[:200]}"})
        response = web.Response(status=status, body=body, headers={"Content-Type": UPSTREAM_JSON})
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kw: Any) -> None:
        if isinstance(kw.get("exc_info"), MALFORMED):
            log.debug("%s: %s", self.peername, kw["exc_info"])
        else:
            super().log_exception(*args, **kw)

    def _answered_directly(self, data: bytes) -> bool:
        if self._head_began or not self.has_no_request or self.writing_paused or self.transport is None:
            return False
        return self._direct(data, self.transport.write)

    def _head_is_late(self) -> None:
        if self._head_began:
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, f"the head was not here within {self._seconds:g} s")
        else:
            self.force_close()

    def _answer_is_not_read(self) -> None:
        log.debug("%s: does not read its answer", self.peername)
        if self.transport is not None:
            self.transport.abort()


def bearable_connections() -> int:
    """Returns how many connections of one runner this process can bear."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if files == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, files // 4)
