"""HTTP transport: one request and its answer, with authentication, TLS and the client's errors.

At most `MAX_CONNECTIONS` connections, watches included: a server process stops to answer above 1024, those of other
clients and idle ones included.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import aiohttp
from yarl import URL

from contrail_config.http_client.connections import abort, connection_problem
from contrail_config.kube.observer import ClientObserver, NoObserver
from contrail_config.vnc.answers import answer_error
from contrail_config.vnc.authentication import Authentication
from contrail_config.vnc.credential_files import Tls, context_of
from contrail_config.vnc.errors import VncOverloadedError, VncRejectedError, VncUnauthorizedError, VncUnavailableError
from contrail_config.vnc.server_clock import ServerClock
from contrail_config.vnc.servers import Servers

MAX_BODY = 1_024_000
"""Bytes of a request's body that the server accepts."""

MAX_CONNECTIONS = 64
ATTEMPT_DEADLINE = 10.0
"""Seconds for one attempt. Lists of large collections are read in pages, each within this time."""

CONNECT_DEADLINE = 3.0
"""Seconds to connect; another server may answer at once."""

_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_DEADLINE)  # the caller has a deadline


T = TypeVar("T")

WATCH = "/watch"
"""Path of the watch."""


class VncRequest(NamedTuple):
    """A request. `body` is JSON."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Transport:
    """Requests to the current one of several servers.

    `before_write` is called before each attempt of a write. It returns the seconds that the write may take, or raises
    VncError if it is not permitted.
    """

    def __init__(
        self,
        servers: Servers,
        session: aiohttp.ClientSession,
        authentication: Authentication,
        *,
        tls: Tls | None,
        before_write: Callable[[], float],
        observer: ClientObserver | None = None,
    ) -> None:
        self._servers = servers
        self._session = session
        self._authentication = authentication
        self._tls = tls
        self._before_write = before_write
        self.observer = observer or NoObserver()
        self.clock = ServerClock()

    async def exchange(self, request: VncRequest, *, deadline: float) -> bytes:
        """Returns the body of a successful answer. Raises VncError."""
        if request.body is not None and len(request.body) > MAX_BODY:
            size = len(request.body)
            raise VncRejectedError(f"{request}: {size} bytes are more than the {MAX_BODY} that the server accepts")
        return await self._authenticated(lambda credentials: self._exchange(request, credentials, deadline))

    @contextlib.asynccontextmanager
    async def stream(self, request: VncRequest, *, idle: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yields the lines of an answer without end; the iterator raises VncError after `idle` seconds without one."""
        response = await self._authenticated(lambda credentials: self._begin(request, credentials))
        try:
            yield self._chunks(request, response, idle)
        finally:
            abort(response)

    async def _authenticated(self, attempt: Callable[[Mapping[str, str]], Awaitable[T]]) -> T:
        """Attempts a request; if the server rejects token or password (401), again with renewed ones, once.

        Credentials are no part of an attempt: if they cannot be had, the server is not to blame.
        """
        credentials = await self._authentication.headers()
        try:
            return await attempt(credentials)
        except VncUnauthorizedError:
            if not self._authentication.renew(credentials):
                raise
        return await attempt(await self._authentication.headers())

    async def _exchange(self, request: VncRequest, credentials: Mapping[str, str], deadline: float) -> bytes:
        if _is_write(request):
            deadline = min(deadline, self._before_write())
        with self._moving_on(request):
            async with asyncio.timeout(deadline), await self._open(request, credentials) as response:
                return await response.read()

    async def _begin(self, request: VncRequest, credentials: Mapping[str, str]) -> aiohttp.ClientResponse:
        """Returns an answer whose headers have arrived."""
        with self._moving_on(request):
            async with asyncio.timeout(ATTEMPT_DEADLINE):
                return await self._open(request, credentials)

    async def _chunks(self, request: VncRequest, response: aiohttp.ClientResponse, idle: float) -> AsyncIterator[bytes]:
        with self._moving_on(request):
            while True:
                async with asyncio.timeout(idle):
                    chunk = await response.content.readany()
                if not chunk:
                    return
                yield chunk

    async def _open(self, request: VncRequest, credentials: Mapping[str, str]) -> aiohttp.ClientResponse:
        """Returns a successful answer, with its body unread."""
        response = await self._send(request, credentials)
        if response.status == 200:
            return response
        async with response:
            text = (await response.read()).decode("utf-8", "replace")
        raise answer_error(str(request), response.status, text, response.headers)

    async def _send(self, request: VncRequest, credentials: Mapping[str, str]) -> aiohttp.ClientResponse:
        content = {"Content-Type": "application/json"} if request.body is not None else {}
        context = await context_of(self._tls)
        started, status = asyncio.get_running_loop().time(), "none"
        try:
            response = await self._session.request(
                request.method,
                URL(self._servers.current + request.path),
                params=request.query,
                data=request.body,
                headers={"Accept": "application/json", **content, **credentials},
                ssl=context,
                timeout=_NO_TIMEOUT,
                allow_redirects=False,  # a redirect would send the credentials to another server
            )
            status = str(response.status)
            self.clock.answered(response.headers.get("Date"))
        except aiohttp.ClientConnectionError:
            # with TLS 1.3 a server that rejects our certificate closes the connection after the handshake
            if self._tls is not None:
                self._tls.invalidate()  # certificates may have rotated: the caller's retry reads them again
            raise
        finally:
            method = "WATCH" if request.path == WATCH else request.method
            self.observer.responded(method, status, asyncio.get_running_loop().time() - started)
        acknowledge_at_once(response)
        return response

    @contextlib.contextmanager
    def _moving_on(self, request: VncRequest) -> Iterator[None]:
        """Maps errors of the connection, and moves on to the next server if this one does not serve."""
        server = self._servers.current
        try:
            yield
        except (aiohttp.ClientError, OSError) as error:  # a TimeoutError is an OSError
            self._servers.failed(server)
            raise VncUnavailableError(f"{request} at {server}: {connection_problem(error)}") from error
        except VncOverloadedError as error:
            if error.status == 503:
                self._servers.failed(server)
            raise
        except VncUnavailableError:
            self._servers.failed(server)
            raise


def acknowledge_at_once(response: aiohttp.ClientResponse) -> None:
    """Acknowledges the head of an answer whose body is not there yet.

    The server sends the body only then, as it sends head and body in two segments with Nagle's algorithm. The kernel
    would delay the acknowledgement by 40 ms.
    """
    connection = response.connection  # None if the body has arrived
    if connection is not None and connection.transport is not None:
        opened = connection.transport.get_extra_info("socket")
        if opened is not None:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _is_write(request: VncRequest) -> bool:
    return request.method != "GET" and request.path not in _READS


_READS = frozenset({"/fqname-to-id", "/id-to-fqname", "/list-bulk-collection"})
"""Requests that change nothing, although their method is POST."""
