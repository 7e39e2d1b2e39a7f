"""Client of the Contrail API server: the verbs and actions that a store needs.

Every request has a deadline, and is repeated while the server is unavailable. So VncExistsError of a create, and
VncNotFoundError of a delete, may stem from the caller's own request whose first answer was lost.

There is no compare-and-swap, and a name is unique only in a create without uuid.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import aiohttp
import msgspec

from contrail_config.http_client.sockets import Sockets
from contrail_config.kube.observer import ClientObserver, ignore_event
from contrail_config.vnc.authentication import Authentication, NoAuthentication
from contrail_config.vnc.credential_files import Tls
from contrail_config.vnc.errors import VncError, VncNotFoundError, VncUnavailableError
from contrail_config.vnc.keystone import KeystoneTokens, KeystoneUser
from contrail_config.vnc.reference import Reference
from contrail_config.vnc.retries import DEADLINE, retried
from contrail_config.vnc.server_sent_events import ServerEvent, read_events
from contrail_config.vnc.servers import Servers
from contrail_config.vnc.transport import ATTEMPT_DEADLINE, MAX_CONNECTIONS, WATCH, Transport, VncRequest

Object = dict[str, Any]

PAGE_LENGTH = 500
WATCH_IDLE = 150.0
"""Seconds without anything from a watch, after which it is lost: two keep-alives of 60 s are missed then."""


class VncClient:
    """Client of the API servers of one cluster. All methods raise VncError and its subclasses.

    `clock` is that of the server that answered first.
    """

    def __init__(self, transport: Transport, *, deadline: float) -> None:
        self._transport = transport
        self._deadline = deadline
        self.clock = transport.clock

    async def create(self, kind: str, body: Mapping[str, Any]) -> str:
        """Creates an object and returns its uuid. Raises VncExistsError."""
        created = await self._json("POST", f"/{kind}s", body={kind: body})
        return str(created[kind]["uuid"])

    async def read(self, kind: str, uuid: str, *, fields: Collection[str]) -> Object:
        """Returns properties and references of an object. Raises VncNotFoundError."""
        query = {"fields": ",".join(fields), "exclude_hrefs": "1"}
        return dict((await self._json("GET", f"/{kind}/{uuid}", query=query))[kind])

    async def update(self, kind: str, uuid: str, changes: Mapping[str, Any]) -> None:
        """Replaces properties, maps and lists of references as a whole. Raises VncNotFoundError."""
        await self._json("PUT", f"/{kind}/{uuid}", body={kind: changes})

    async def delete(self, kind: str, uuid: str) -> None:
        """Deletes an object; one that does not exist is deleted. Raises VncInUseError."""
        with contextlib.suppress(VncNotFoundError):
            await self._sent(VncRequest("DELETE", f"/{kind}/{uuid}"))

    async def set_annotations(self, uuid: str, changed: Mapping[str, str], *, removed: Collection[str] = ()) -> None:
        """Sets and removes single annotations of an object, in one write. Raises VncNotFoundError."""
        updates: list[Object] = [
            {"field": "annotations", "operation": "set", "value": {"key": key, "value": value}}
            for key, value in changed.items()
        ]
        updates += [{"field": "annotations", "operation": "delete", "position": key} for key in removed]
        await self._json("POST", "/prop-collection-update", body={"uuid": uuid, "updates": updates})

    async def add_reference(self, kind: str, uuid: str, target: Reference) -> None:
        """Adds a reference. Idempotent. Raises VncNotFoundError if one of both does not exist."""
        await self._update_reference(kind, uuid, target, "ADD")

    async def remove_reference(self, kind: str, uuid: str, target: Reference) -> None:
        """Removes a reference. Idempotent. Raises VncNotFoundError if the object does not exist."""
        await self._update_reference(kind, uuid, target, "DELETE")

    async def find_uuid(self, kind: str, fq_name: Sequence[str]) -> str:
        """Returns the uuid of a name. Raises VncNotFoundError; VncServerError if it belongs to several uuids."""
        answer = await self._json("POST", "/fqname-to-id", body={"type": kind, "fq_name": list(fq_name)})
        return str(answer["uuid"])

    async def list_all(self, kind: str, *, fields: Collection[str]) -> list[Object]:
        """Returns all objects of a type. What changes meanwhile may be missed, or returned twice."""
        return await self._pages({"type": kind, "fields": ",".join(fields)}, kind)

    async def list_named(self, kind: str, name: str, *, fields: Collection[str]) -> list[Object]:
        """Returns all objects of a type whose display name, by default the last element of the name, is this."""
        condition = f"display_name=={msgspec.json.encode(name).decode()}"
        return await self._pages({"type": kind, "filters": condition, "fields": ",".join(fields)}, kind)

    async def list_referring(self, kind: str, targets: Collection[str], *, fields: Collection[str]) -> list[Object]:
        """Returns the objects of a type that refer to one of the uuids."""
        return await self._anchored(kind, "back_ref_id", targets, fields)

    async def list_by_uuid(self, kind: str, uuids: Collection[str], *, fields: Collection[str]) -> list[Object]:
        """Returns the objects of these uuids that exist."""
        return await self._anchored(kind, "obj_uuids", uuids, fields)

    async def has_watch(self) -> bool:
        """Whether the server can be watched, asked without retries: those before R2008 cannot."""
        answer = await self._transport.exchange(VncRequest("GET", "/"), deadline=ATTEMPT_DEADLINE)
        links = _decoded(answer, "GET /")["links"]
        return any(item["link"]["rel"] == "action" and item["link"]["name"] == "watch" for item in links)

    @contextlib.asynccontextmanager
    async def watch(
        self, fields: Mapping[str, Collection[str]], *, heard: Callable[[], None] = ignore_event
    ) -> AsyncIterator[AsyncIterator[ServerEvent]]:
        """Yields events of types, each with the fields to read, without retries.

        `heard` is called whenever the server has sent something.
        The iteration ends when the server stops, and raises VncError if the server fails or is silent.
        """
        # with hyphens the server accepts the watch, and never sends an event
        names = {kind.replace("-", "_"): chosen for kind, chosen in fields.items()}
        query = {f"{name}_fields": ",".join(chosen) for name, chosen in names.items()}
        request = VncRequest("GET", WATCH, {"resource_type": ",".join(names), **query})
        async with self._transport.stream(request, idle=WATCH_IDLE) as chunks:
            yield read_events(_observed(chunks, heard), where=str(request))

    def watching(self, kind: str) -> contextlib.AbstractContextManager[Callable[[], None]]:
        """Shows a watch of the type to the client's observer inside the context; yields what `heard` has to call."""
        return self._transport.observer.watching(kind)

    async def _anchored(self, kind: str, anchor: str, uuids: Collection[str], fields: Collection[str]) -> list[Object]:
        if not uuids:
            return []  # an absent anchor would list everything
        return await self._pages({"type": kind, anchor: ",".join(uuids), "fields": ",".join(fields)}, kind)

    async def _pages(self, query: Object, kind: str) -> list[Object]:
        # a request body has no limit of length, unlike a URL
        found: dict[str, Object] = {}
        marker: str | None = ""
        while marker is not None:
            # without a marker, even an empty one, the server ignores the limit
            page = {**query, "exclude_hrefs": True, "page_marker": marker, "page_limit": str(PAGE_LENGTH)}
            answer = await self._json("POST", "/list-bulk-collection", body=page)
            found.update((item["uuid"], item) for item in answer[f"{kind}s"])
            marker = answer["marker"]
        return list(found.values())

    async def _update_reference(self, kind: str, uuid: str, target: Reference, operation: str) -> None:
        body = {"type": kind, "uuid": uuid, "ref-type": target.kind, "ref-uuid": target.uuid, "operation": operation}
        await self._json("POST", "/ref-update", body=body)

    async def _json(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Object | None = None
    ) -> Any:
        """Returns the JSON of an answer; None if its body is empty."""
        encoded = None if body is None else msgspec.json.encode(body)
        return _decoded(await self._sent(VncRequest(method, path, query or {}, encoded)), f"{method} {path}")

    async def _sent(self, request: VncRequest) -> bytes:
        # A series of attempts costs a tenth of a request's processor time, so it begins with the first failure.
        started = asyncio.get_running_loop().time()
        try:
            return await self._exchanged(request)
        except VncUnavailableError as error:
            failures = [error]
        left = self._deadline - (asyncio.get_running_loop().time() - started)
        async for attempt in retried(deadline=left):
            with attempt:
                if failures:
                    raise failures.pop()
                return await self._exchanged(request)
        raise AssertionError("tenacity raises the last error")

    async def _exchanged(self, request: VncRequest) -> bytes:
        return await self._transport.exchange(request, deadline=min(ATTEMPT_DEADLINE, self._deadline))


async def _observed(chunks: AsyncIterator[bytes], heard: Callable[[], None]) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        heard()
        yield chunk


def _decoded(answer: bytes, request: str) -> Any:
    """Returns the JSON of an answer; None if its body is empty."""
    try:
        return msgspec.json.decode(answer) if answer else None
    except msgspec.DecodeError as error:
        raise VncError(f"{request}: the response is no JSON: {error}") from error


class VncAccess(NamedTuple):
    """How to reach the servers: their URLs in order, and one of both authentications if they need one."""

    urls: tuple[str, ...]
    keystone: KeystoneUser | None = None
    authentication: Authentication | None = None
    tls: Tls | None = None
    keystone_tls: Tls | None = None


def unlimited() -> float:
    """A `before_write` hook that permits every write, for any time."""
    return math.inf


@contextlib.asynccontextmanager
async def connect(
    access: VncAccess,
    *,
    deadline: float = DEADLINE,
    before_write: Callable[[], float] = unlimited,
    observer: ClientObserver | None = None,
) -> AsyncIterator[VncClient]:
    """Yields a client, and closes its connections on exit. `before_write` is that of `Transport`."""
    sockets = Sockets()
    connector = aiohttp.TCPConnector(limit=MAX_CONNECTIONS, socket_factory=sockets.open)
    try:
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
            authentication = _authentication(access, session)
            try:
                transport = Transport(
                    Servers(access.urls),
                    session,
                    authentication,
                    tls=access.tls,
                    before_write=before_write,
                    observer=observer,
                )
                yield VncClient(transport, deadline=deadline)
            finally:
                await authentication.close()
    finally:
        await sockets.close()


def _authentication(access: VncAccess, session: aiohttp.ClientSession) -> Authentication:
    if access.keystone is not None:
        return KeystoneTokens(access.keystone, session, tls=access.keystone_tls)
    return access.authentication or NoAuthentication()
