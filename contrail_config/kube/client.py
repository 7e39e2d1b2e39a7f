"""Kubernetes client: the verbs, for any kind that a `Resource` describes.

Each request has a deadline, and its retries start within the same time. Transient failures are retried where that is
safe: requests that the server did not process always, otherwise reads and idempotent writes only. So a conflict, or a
missing object on delete, may stem from the caller's own write whose first response was lost.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

import aiohttp
import msgspec

from contrail_config.http_client.sockets import Sockets
from contrail_config.kube.backoff import Backoff
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.decoding import UndecodableObject, decode
from contrail_config.kube.errors import KubeError, KubeGoneError, KubeThrottledError, KubeUnavailableError
from contrail_config.kube.observer import ClientObserver, ignore_event
from contrail_config.kube.paging import PAGE_LENGTH, Page, read_pages
from contrail_config.kube.resource import KubeObject, Resource
from contrail_config.kube.selector import EVERYTHING, Selector
from contrail_config.kube.transport import ApiRequest, Transport, unlimited
from contrail_config.kube.watch import WatchEvent, open_watch

DEADLINE = 30.0
"""Seconds for a response; retries start within the same time."""

ATTEMPTS = 4

PAGE_ATTEMPTS = 10
PAGE_DEADLINES = 3
"""Of one page: a list that is almost read is worth more. An overloaded API server asks to wait for up to 32 s."""

LONGER_PAGES = 4
"""Factor by which pages are longer after a list has expired, so that the next one ends in time."""

_Errors = type[KubeError] | tuple[type[KubeError], ...]
_TRANSIENT: _Errors = KubeUnavailableError
_NOT_PROCESSED: _Errors = KubeThrottledError

_MERGE_PATCH = "application/merge-patch+json"
T = TypeVar("T", bound=KubeObject)
S = TypeVar("S")


class KubeClient:
    """Client of one server. All methods raise KubeError and its subclasses."""

    def __init__(self, transport: Transport, *, deadline: float, low_priority: bool = False) -> None:
        self._transport = transport
        self._write = transport.exchange_low_priority if low_priority else transport.exchange
        self._deadline = deadline

    def low_priority(self) -> "KubeClient":
        """Returns a client on the same connections with low-priority writes: see `RequestPriority`."""
        return KubeClient(self._transport, deadline=self._deadline, low_priority=True)

    def authorization_failures(self) -> list[str]:
        """Returns the server's messages for missing rights: see `AuthorizationFailures.persistent`."""
        return self._transport.authorization_failures.persistent()

    async def get(self, resource: Resource[T], name: str, *, namespace: str = "") -> T:
        """Returns an object. Raises KubeNotFoundError."""
        request = ApiRequest("GET", resource.path(namespace, name))
        return await self._object(resource, request, retried=_TRANSIENT)

    async def read(
        self, resource: Resource[T], name: str, subresource: str, *, namespace: str = "", query: Mapping[str, str]
    ) -> bytes:
        """Returns a subresource that is no object, such as the log of a pod. Raises KubeNotFoundError."""
        request = ApiRequest("GET", resource.path(namespace, name, subresource), query)
        return await self._retried(_TRANSIENT, self._transport.exchange, request)

    async def list_all(self, resource: Resource[T], selector: Selector = EVERYTHING) -> list[T]:
        """Returns a consistent snapshot of all objects. Raises KubeError if one of them cannot be decoded."""
        return [_decoded(item) for item in await self.list_each(resource, selector)]

    async def list_each(self, resource: Resource[T], selector: Selector = EVERYTHING) -> list[T | UndecodableObject]:
        """The same for objects that anybody may have written: undecodable ones are part of the list."""
        return await self.list_kept(resource, lambda item: item, selector)

    async def list_kept(
        self, resource: Resource[T], keep: Callable[[T | UndecodableObject], S], selector: Selector = EVERYTHING
    ) -> list[S]:
        """The same, but only what `keep` returns for each object, so that a long list need not be held whole."""
        for length in (PAGE_LENGTH, PAGE_LENGTH * LONGER_PAGES):
            # 410: the snapshot expired between two pages, so the whole list starts over
            with contextlib.suppress(KubeGoneError):
                return await self._all(resource, keep, selector, length=length)
        return await self._all(resource, keep, selector, length=PAGE_LENGTH * LONGER_PAGES**2)

    async def create(self, resource: Resource[T], body: Any, *, namespace: str = "") -> T:
        """Creates an object from a struct or a dict and returns it as stored. Raises KubeExistsError."""
        # not idempotent: after an unknown outcome a retry could fail with "already exists" for our own object
        request = ApiRequest("POST", resource.path(namespace), body=_encode(resource, body))
        return await self._object(resource, request, retried=_NOT_PROCESSED)

    async def replace(
        self, resource: Resource[T], name: str, body: Any, *, namespace: str = "", subresource: str = ""
    ) -> T:
        """Replaces the whole object: fields that `body` omits are removed. Raises KubeNotFoundError, KubeConflictError.

        With the `metadata.resourceVersion` that was read, this is a compare-and-swap.
        """
        request = ApiRequest("PUT", resource.path(namespace, name, subresource), body=_encode(resource, body))
        return await self._object(resource, request, retried=_TRANSIENT)

    async def patch(
        self, resource: Resource[T], name: str, patch: Any, *, namespace: str = "", subresource: str = ""
    ) -> T:
        """Merges the patch into an object (RFC 7396: null removes). Raises KubeNotFoundError.

        A `metadata.resourceVersion` in the patch that does not match raises KubeConflictError, a `metadata.uid`
        KubeInvalidError.
        """
        path = resource.path(namespace, name, subresource)
        # custom resources support merge patch, but no strategic merge patch
        request = ApiRequest("PATCH", path, body=msgspec.json.encode(patch), content_type=_MERGE_PATCH)
        return await self._object(resource, request, retried=_TRANSIENT)

    async def delete(
        self,
        resource: Resource[T],
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_period: int | None = None,
    ) -> None:
        """Deletes an object, with preconditions if given. Raises KubeNotFoundError; KubeConflictError if they fail.

        `grace_period`: seconds that the node has to stop a pod, 0 deletes at once; None: as the pod specifies.
        """
        given = {"uid": uid, "resourceVersion": resource_version}
        options: dict[str, Any] = {"preconditions": {key: value for key, value in given.items() if value}}
        if grace_period is not None:
            options["gracePeriodSeconds"] = grace_period
        # options go into the body: uid and resourceVersion preconditions have no query parameters
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", **options})
        request = ApiRequest("DELETE", resource.path(namespace, name), body=body)
        await self._retried(_TRANSIENT, self._write, request)

    def pages(
        self,
        resource: Resource[T],
        selector: Selector = EVERYTHING,
        *,
        length: int = PAGE_LENGTH,
        not_older_than: str | None = None,
        token: str = "",
    ) -> AsyncGenerator[Page[T], None]:
        """Yields a list page by page; each page that fails is requested again. See `read_pages`."""
        return read_pages(self._page, resource, selector, length=length, not_older_than=not_older_than, token=token)

    def watch(
        self,
        resource: Resource[T],
        selector: Selector = EVERYTHING,
        *,
        since: str,
        seconds: float,
        heard: Callable[[], None] = ignore_event,
    ) -> contextlib.AbstractAsyncContextManager[AsyncIterator[WatchEvent[T]]]:
        """Yields the events after a resourceVersion, without retries; a `Reflector` watches forever.

        `heard` is called whenever the server has sent something.
        """
        return open_watch(self._transport, resource, selector, since=since, seconds=seconds, heard=heard)

    def watching(self, resource: Resource[T]) -> contextlib.AbstractContextManager[Callable[[], None]]:
        """Shows a watch of the resource to the client's observer inside the context, and yields `heard` of `watch`."""
        return self._transport.observer.watching(resource.plural)

    async def _page(self, request: ApiRequest) -> bytes:
        exchange = self._transport.exchange
        return await self._retried(
            _TRANSIENT, exchange, request, attempts=PAGE_ATTEMPTS, deadline=PAGE_DEADLINES * self._deadline
        )

    async def _all(
        self, resource: Resource[T], keep: Callable[[T | UndecodableObject], S], selector: Selector, *, length: int
    ) -> list[S]:
        return [keep(item) async for page in self.pages(resource, selector, length=length) for item in page.items]

    async def _object(self, resource: Resource[T], request: ApiRequest, *, retried: _Errors) -> T:
        # reads of a low-priority client keep high priority: somebody waits for them
        exchange = self._transport.exchange if request.method == "GET" else self._write
        response = await self._retried(retried, exchange, request)
        return decode(response, resource.type, request=str(request))

    async def _retried(
        self,
        errors: _Errors,
        attempt: Callable[[ApiRequest], Awaitable[S]],
        request: ApiRequest,
        *,
        attempts: int = ATTEMPTS,
        deadline: float | None = None,
    ) -> S:
        """Returns the result of the first attempt that does not raise one of `errors`, or of the last attempt."""
        # almost every request succeeds at once, so this path sets up no retry object of a library
        give_up = asyncio.get_running_loop().time() + (self._deadline if deadline is None else deadline)
        backoff = Backoff(first=0.2, longest=4.0)
        for _ in range(attempts - 1):
            try:
                return await attempt(request)
            except errors as error:
                pause = backoff.next_pause(retry_after=error.retry_after)
                if asyncio.get_running_loop().time() + pause > give_up:
                    raise  # another attempt would start after the deadline
            await asyncio.sleep(pause)
        return await attempt(request)


@contextlib.asynccontextmanager
async def connect(
    config: ClientConfig,
    *,
    deadline: float = DEADLINE,
    before_write: Callable[[], float] = unlimited,
    observer: ClientObserver | None = None,
) -> AsyncIterator[KubeClient]:
    """Yields a client; on exit, closes its connections and stops a running credential plugin.

    `before_write` is called before each attempt of a write, as in `Transport`; pass `Leadership.check` for fencing.
    """
    sockets = Sockets()
    # no limit: every watch holds a connection, and aiohttp's default of 100 would block all other requests
    connector = aiohttp.TCPConnector(limit=0, socket_factory=sockets.open)
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            transport = Transport(config, session, deadline=deadline, before_write=before_write, observer=observer)
            yield KubeClient(transport, deadline=deadline)
    finally:
        await config.credentials.close()
        await sockets.close()  # after the session, which closes the connections in its pool properly


def _encode(resource: Resource[Any], body: Any) -> bytes:
    """Returns the body as JSON, with apiVersion and kind."""
    if isinstance(body, dict):
        return msgspec.json.encode({"apiVersion": resource.api_version, "kind": resource.kind} | body)
    # structs do not hold apiVersion and kind; joining bytes avoids a second pass over a large body
    return resource.prefix + msgspec.json.encode(body).removeprefix(b"{")


def _decoded(item: T | UndecodableObject) -> T:
    if isinstance(item, UndecodableObject):
        raise KubeError(f"{item.metadata.namespace}/{item.metadata.name}: {item.problem}")
    return item
