"""The verbs, for any kind that a `Resource` describes.

Every exchange has a deadline, and repetitions begin within the same time. What failed for a reason that passes is tried
again where that does no harm: what the server refused to begin with always, else reads, and writes that come to the
same when done twice. So a conflict, or a missing object at a delete, may be the caller's own write whose first answer
was lost.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

import aiohttp
import msgspec

from contrail_config.kube.backoff import Backoff
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.decoding import UndecodableObject, decode
from contrail_config.kube.errors import KubeError, KubeGoneError, KubeThrottledError, KubeUnavailableError
from contrail_config.kube.paging import PAGE_LENGTH, Page, read_pages
from contrail_config.kube.resource import KubeObject, Resource
from contrail_config.kube.selector import EVERYTHING, Selector
from contrail_config.kube.sockets import Sockets
from contrail_config.kube.transport import Call, Transport, always
from contrail_config.kube.watch import WatchEvent, open_watch

DEADLINE = 30.0
"""Seconds for an answer; repetitions begin within the same time."""

ATTEMPTS = 4

_Passing = type[KubeError] | tuple[type[KubeError], ...]
_PASSING: _Passing = KubeUnavailableError
_NOT_BEGUN: _Passing = KubeThrottledError

_PATCH = "application/merge-patch+json"

T = TypeVar("T", bound=KubeObject)
S = TypeVar("S")
P = ParamSpec("P")


class KubeClient:
    """Speaks with one server. All methods raise KubeError and its kinds."""

    def __init__(self, transport: Transport, *, deadline: float, leisurely: bool = False) -> None:
        self._transport = transport
        self._write = transport.exchange_leisurely if leisurely else transport.exchange
        self._deadline = deadline

    def leisurely(self) -> "KubeClient":
        """The same client for writes that nobody waits for: they give way to all else, see `turns`."""
        return KubeClient(self._transport, deadline=self._deadline, leisurely=True)

    def refused(self) -> list[str]:
        """What the server's authorizer has refused for a while, in its words: see `refusals`."""
        return self._transport.refusals.lasting()

    async def get(self, resource: Resource[T], name: str, *, namespace: str = "") -> T:
        """Returns an object. Raises KubeNotFoundError."""
        return await self._object(resource, Call("GET", resource.path(namespace, name)), passing=_PASSING)

    async def list_all(self, resource: Resource[T], selection: Selector = EVERYTHING) -> list[T]:
        """Returns all objects as they were at one moment. Raises KubeError if one does not fit its struct."""
        return [_readable(item) for item in await self.list_each(resource, selection)]

    async def list_each(self, resource: Resource[T], selection: Selector = EVERYTHING) -> list[T | UndecodableObject]:
        """The same where anybody may have written them: those that do not fit their struct are told apart."""
        return await self._repeated((KubeUnavailableError, KubeGoneError), self._all, resource, selection)

    async def create(self, resource: Resource[T], body: Any, *, namespace: str = "") -> T:
        """Creates an object from a struct or a dict and returns it as kept. Raises KubeExistsError."""
        call = Call("POST", resource.path(namespace), body=_whole(resource, body))
        return await self._object(resource, call, passing=_NOT_BEGUN)

    async def replace(
        self, resource: Resource[T], name: str, body: Any, *, namespace: str = "", subresource: str = ""
    ) -> T:
        """Replaces an object, all of it: what `body` leaves out is gone. Raises KubeNotFoundError, KubeConflictError.

        With the `metadata.resourceVersion` that was read it is a compare-and-swap.
        """
        call = Call("PUT", resource.path(namespace, name, subresource), body=_whole(resource, body))
        return await self._object(resource, call, passing=_PASSING)

    async def patch(
        self, resource: Resource[T], name: str, patch: Any, *, namespace: str = "", subresource: str = ""
    ) -> T:
        """Merges into an object (RFC 7396: null removes). Raises KubeNotFoundError.

        If the object is not the one that is stated by `metadata.resourceVersion` in the patch it raises
        KubeConflictError, by `metadata.uid` KubeInvalidError.
        """
        path = resource.path(namespace, name, subresource)
        call = Call("PATCH", path, body=msgspec.json.encode(patch), content_type=_PATCH)
        return await self._object(resource, call, passing=_PASSING)

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
        """Deletes an object, only the one stated. Raises KubeNotFoundError; KubeConflictError if it is another one.

        `grace_period`: seconds that a pod's node has for its end, 0 if it has none; by default what the pod says.
        """
        stated = {"uid": uid, "resourceVersion": resource_version}
        options: dict[str, Any] = {"preconditions": {key: value for key, value in stated.items() if value}}
        if grace_period is not None:
            options["gracePeriodSeconds"] = grace_period
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", **options})
        call = Call("DELETE", resource.path(namespace, name), body=body)
        await self._repeated(_PASSING, self._write, call)

    def pages(
        self, resource: Resource[T], selection: Selector = EVERYTHING, *, length: int = PAGE_LENGTH
    ) -> AsyncGenerator[Page[T], None]:
        """Gives a list in parts, each tried once."""
        return read_pages(self._transport, resource, selection, length=length)

    def watch(
        self, resource: Resource[T], selection: Selector = EVERYTHING, *, since: str, seconds: float
    ) -> contextlib.AbstractAsyncContextManager[AsyncIterator[WatchEvent[T]]]:
        """Gives what changes after a resourceVersion, tried once: see `reflector` for what never ends."""
        return open_watch(self._transport, resource, selection, since=since, seconds=seconds)

    async def _all(self, resource: Resource[T], selection: Selector) -> list[T | UndecodableObject]:
        return [item async for page in self.pages(resource, selection) for item in page.items]

    async def _object(self, resource: Resource[T], call: Call, *, passing: _Passing) -> T:
        exchange = self._transport.exchange if call.method == "GET" else self._write
        answer = await self._repeated(passing, exchange, call)
        return decode(answer, resource.type, asked=str(call))

    async def _repeated(
        self, passing: _Passing, attempt: Callable[P, Awaitable[S]], *args: P.args, **kwargs: P.kwargs
    ) -> S:
        """Returns what an attempt returns, repeated after errors that pass."""
        give_up = asyncio.get_running_loop().time() + self._deadline
        backoff = Backoff(first=0.2, longest=4.0)
        for _ in range(ATTEMPTS - 1):
            try:
                return await attempt(*args, **kwargs)
            except passing as error:
                pause = backoff.next_pause(asked=error.retry_after)
                if asyncio.get_running_loop().time() + pause > give_up:
                    raise
            await asyncio.sleep(pause)
        return await attempt(*args, **kwargs)


@contextlib.asynccontextmanager
async def connect(
    access: ClientConfig, *, deadline: float = DEADLINE, before_write: Callable[[], float] = always
) -> AsyncIterator[KubeClient]:
    """Gives a client, whose connections close when the context is left; a command that gives credentials ends, too.

    `before_write` is called before each try of a write, as `Transport` says: `Leadership.check`.
    """
    sockets = Sockets()
    connector = aiohttp.TCPConnector(limit=0, socket_factory=sockets.open)
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            transport = Transport(access, session, deadline=deadline, before_write=before_write)
            yield KubeClient(transport, deadline=deadline)
    finally:
        await access.credentials.end()
        await sockets.end()


def _whole(resource: Resource[Any], body: Any) -> bytes:
    """The body as JSON, and what it is."""
    if isinstance(body, dict):
        return msgspec.json.encode({"apiVersion": resource.api_version, "kind": resource.kind} | body)
    return resource.prefix + msgspec.json.encode(body).removeprefix(b"{")


def _readable(item: T | UndecodableObject) -> T:
    if isinstance(item, UndecodableObject):
        raise KubeError(f"{item.metadata.namespace}/{item.metadata.name}: {item.problem}")
    return item
