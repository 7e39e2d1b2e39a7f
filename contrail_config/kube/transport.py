"""One HTTP exchange with the server: who asks, over which connection, and errors as this package has them.

The connections are kept by one session without a bound on their number: HTTP/1.1 needs one for each watch. Token and
TLS context are asked for at each request, so rotated ones count at once; connections of an old context are not used
again and close when they have been idle.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from typing import NamedTuple

import aiohttp
from yarl import URL

from contrail_config.kube.authorization_failures import AuthorizationFailures
from contrail_config.kube.client_config import ClientConfig, Credential
from contrail_config.kube.errors import KubeUnavailableError
from contrail_config.kube.request_priority import RequestPriority
from contrail_config.kube.status import error_of, read_status
from contrail_config.kube.unreachable import why_unreachable

CONNECT_DEADLINE = 10.0
_PIECE = 65_536  # bytes
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_DEADLINE)  # the caller has a deadline


class Call(NamedTuple):
    """A request. `path` is encoded; `ends`: when the server shall have ended it, on the event loop's clock."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = "application/json"
    ends: float = math.inf

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def stated(self) -> Mapping[str, str]:
        """Returns the query with the time that the server has, if it is bounded; asked when it is about to be sent."""
        if self.ends == math.inf:
            return self.query
        left = self.ends - asyncio.get_running_loop().time()
        return {**self.query, "timeout": f"{max(math.ceil(left * 1000), 1)}ms"}


def always() -> float:
    """Everything may be written, and may take any time."""
    return math.inf


class Transport:
    """Exchanges with one server over one session, each within `deadline` seconds.

    `before_write` is called before each try of a write, and returns the seconds that it may take, at the server too.
    Raises KubeError if it may not be.
    """

    def __init__(
        self,
        access: ClientConfig,
        session: aiohttp.ClientSession,
        *,
        deadline: float,
        before_write: Callable[[], float] = always,
    ) -> None:
        self._access = access
        self._session = session
        self._deadline = deadline
        self._before_write = before_write
        self._base = URL(access.server)
        self._turns = RequestPriority()
        self.refusals = AuthorizationFailures()

    async def exchange(self, call: Call) -> bytes:
        """Returns the answer's body. Raises KubeError."""
        async with self._turns.urgent():
            return await self._exchange(call)

    async def exchange_leisurely(self, call: Call) -> bytes:
        """The same, when it is the turn of what nobody waits for."""
        async with self._turns.leisurely():
            return await self._exchange(call)

    async def _exchange(self, call: Call) -> bytes:
        deadline = self._deadline
        if call.method != "GET" and (allowed := self._before_write()) < deadline:
            deadline = allowed
            call = call._replace(ends=asyncio.get_running_loop().time() + allowed)
        with _as_kube_error(call):
            async with asyncio.timeout(deadline), await self._open(call) as response:
                return await response.read()

    @contextlib.asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[AsyncGenerator[bytes, None]]:
        """Gives the answer's body in pieces as they come, for as long as they come. Raises KubeError, as these do."""
        with _as_kube_error(call):
            async with asyncio.timeout(self._deadline):
                response = await self._open(call)
        try:
            async with contextlib.aclosing(_pieces(call, response)) as pieces:
                yield pieces
        finally:
            _cut(response)

    async def _open(self, call: Call) -> aiohttp.ClientResponse:
        """Returns an answer that is no error, its body still to be read."""
        response = await self._ask_with_credentials(call)
        if response.status < 300:
            return response
        async with response:
            status = read_status(await response.read())
        if response.status == 403:
            self.refusals.note(status.message)
        raise error_of(str(call), response.status, status, response.headers)

    async def _ask_with_credentials(self, call: Call) -> aiohttp.ClientResponse:
        """Asks once more if the server does not know who asks, and the credentials may have rotated."""
        credential = await self._access.credentials.current()
        response = await self._ask(call, credential)
        if response.status == 401 and self._access.credentials.forget(credential):
            response.close()
            response = await self._ask(call, await self._access.credentials.current())
        return response

    async def _ask(self, call: Call, credential: Credential) -> aiohttp.ClientResponse:
        tls = self._access.tls
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "Content-Type": call.content_type}
        if credential.token:
            headers["Authorization"] = f"Bearer {credential.token}"
        secured = await tls.context(credential.certificate) if tls else True
        try:
            return await self._session.request(
                call.method,
                self._base.with_path(self._base.raw_path.rstrip("/") + call.path, encoded=True),
                params=call.stated(),
                data=call.body,
                headers=headers,
                ssl=secured,
                server_hostname=self._access.server_name,
                proxy=self._access.proxy,
                timeout=_NO_TIMEOUT,
                allow_redirects=False,
            )
        except aiohttp.ClientConnectorCertificateError:
            if tls:
                tls.forget()
            raise


def _cut(response: aiohttp.ClientResponse) -> None:
    """Drops the connection without the farewell of TLS: what is still to come would have to be read before it."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()


async def _pieces(call: Call, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    with _as_kube_error(call):
        async for piece in response.content.iter_chunked(_PIECE):
            yield piece


@contextlib.contextmanager
def _as_kube_error(call: Call) -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:  # a TimeoutError is an OSError
        raise KubeUnavailableError(f"{call}: {why_unreachable(error)}") from error
