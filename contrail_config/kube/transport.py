"""HTTP transport: one request and its response, with credentials, TLS and the client's errors.

One aiohttp session holds the connections, without a limit: with HTTP/1.1 each watch needs one. Token and TLS context
are looked up for each request, so a rotation takes effect at once; connections with an old context are not reused, and
close when they have been idle.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from typing import NamedTuple

import aiohttp
import msgspec
from yarl import URL

from contrail_config.http_client.connections import abort, connection_problem
from contrail_config.kube.authorization_failures import AuthorizationFailures
from contrail_config.kube.client_config import ClientConfig, Credential
from contrail_config.kube.errors import KubeUnavailableError
from contrail_config.kube.observer import ClientObserver, NoObserver
from contrail_config.kube.request_priority import RequestPriority
from contrail_config.kube.status import read_status, status_error

CONNECT_DEADLINE = 10.0
_CHUNK = 65_536  # bytes
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_DEADLINE)  # the caller has a deadline


class ApiRequest(NamedTuple):
    """A request. `path` is URL-encoded; `expires`: when the server must give up, on the event loop's clock."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = "application/json"
    expires: float = math.inf

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def query_with_timeout(self) -> Mapping[str, str]:
        """Returns the query, with the server's remaining time as `timeout` if the request expires."""
        if self.expires == math.inf:
            return self.query
        # computed when it is sent: credentials and TLS context may have taken a while
        left = self.expires - asyncio.get_running_loop().time()
        return {**self.query, "timeout": f"{max(math.ceil(left * 1000), 1)}ms"}


def unlimited() -> float:
    """A `before_write` hook that permits every write, for any time."""
    return math.inf


class Transport:
    """Requests to one server over one session, each within `deadline` seconds.

    `before_write` is called before each attempt of a write. It returns the seconds that the write may take, on the
    server too, or raises KubeError if it is not permitted.
    """

    def __init__(
        self,
        config: ClientConfig,
        session: aiohttp.ClientSession,
        *,
        deadline: float,
        before_write: Callable[[], float] = unlimited,
        observer: ClientObserver | None = None,
    ) -> None:
        self._config = config
        self._session = session
        self._deadline = deadline
        self._before_write = before_write
        self.observer = observer or NoObserver()
        self._base = URL(config.server)
        self._priority = RequestPriority()
        self.authorization_failures = AuthorizationFailures()

    async def exchange(self, request: ApiRequest) -> bytes:
        """Returns the body of the response. Raises KubeError."""
        async with self._priority.high():
            return await self._exchange(request)

    async def exchange_low_priority(self, request: ApiRequest) -> bytes:
        """The same, once the request is admitted: see `RequestPriority`."""
        async with self._priority.low():
            return await self._exchange(request)

    async def _exchange(self, request: ApiRequest) -> bytes:
        deadline = self._deadline
        if request.method != "GET" and (allowed := self._before_write()) < deadline:
            # the server gets the same limit: it must not finish a write after another leader may have started
            deadline = allowed
            request = request._replace(expires=asyncio.get_running_loop().time() + allowed)
        with _as_kube_error(request):
            async with asyncio.timeout(deadline), await self._open(request) as response:
                return await response.read()

    @contextlib.asynccontextmanager
    async def stream(self, request: ApiRequest) -> AsyncIterator[AsyncGenerator[bytes, None]]:
        """Yields the body in chunks as they arrive, without a deadline. Raises KubeError, as does the iterator."""
        with _as_kube_error(request):
            async with asyncio.timeout(self._deadline):  # until the headers arrive; the body may take forever
                response = await self._open(request)
        try:
            async with contextlib.aclosing(_chunks(request, response)) as chunks:
                yield chunks
        finally:
            abort(response)

    async def _open(self, request: ApiRequest) -> aiohttp.ClientResponse:
        """Returns a successful response, with its body unread."""
        response, credential = await self._send_authenticated(request)
        if response.status < 300:
            return response
        async with response:  # the body is read completely, so the connection returns to the pool
            status = read_status(await response.read())
        if response.status == 403:
            self.authorization_failures.record(status.message)
        if response.status == 401 and credential.origin:  # the server's own message names nothing
            status = msgspec.structs.replace(status, message=f"the server rejected {credential.origin}")
        raise status_error(str(request), response.status, status, response.headers)

    async def _send_authenticated(self, request: ApiRequest) -> tuple[aiohttp.ClientResponse, Credential]:
        """Sends the request; on 401 reloads the credentials and sends it again, if they can have changed.

        Returns the response and the credential that was sent last.
        """
        credential = await self._config.credentials.current()
        response = await self._send(request, credential)
        # once only: a token that is still rejected after a reload is wrong, not outdated
        if response.status == 401 and self._config.credentials.invalidate(credential):
            response.close()
            credential = await self._config.credentials.current()
            response = await self._send(request, credential)
        return response, credential

    async def _send(self, request: ApiRequest, credential: Credential) -> aiohttp.ClientResponse:
        tls = self._config.tls
        # identity: the server would compress large lists, which costs both sides more time than the cluster's network
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "Content-Type": request.content_type}
        if credential.token:
            headers["Authorization"] = f"Bearer {credential.token}"
        context = await tls.context(credential.certificate) if tls else True
        started, status = asyncio.get_running_loop().time(), "none"
        try:
            response = await self._session.request(
                request.method,
                self._base.with_path(self._base.raw_path.rstrip("/") + request.path, encoded=True),
                params=request.query_with_timeout(),
                data=request.body,
                headers=headers,
                ssl=context,
                server_hostname=self._config.server_name,
                proxy=self._config.proxy,
                timeout=_NO_TIMEOUT,
                allow_redirects=False,  # a redirect would send the token to another server
            )
        except aiohttp.ClientConnectorCertificateError as error:
            if tls is None:
                raise
            tls.invalidate()  # the CA may have rotated; the caller's retry reads it again
            problem = f"{request}: {connection_problem(error)} (verified with {tls.origin})"
            raise KubeUnavailableError(problem) from error
        else:
            status = str(response.status)
            return response
        finally:
            method = "WATCH" if "watch" in request.query else request.method
            self.observer.responded(method, status, asyncio.get_running_loop().time() - started)


async def _chunks(request: ApiRequest, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    with _as_kube_error(request):
        async for chunk in response.content.iter_chunked(_CHUNK):
            yield chunk


@contextlib.contextmanager
def _as_kube_error(request: ApiRequest) -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:  # a TimeoutError is an OSError
        raise KubeUnavailableError(f"{request}: {connection_problem(error)}") from error
