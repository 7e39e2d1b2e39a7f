"""The server: routing of requests to storage, lists and watches."""

import asyncio
import ssl
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

from tests.support.fake_apiserver.faults import Faults
from tests.support.fake_apiserver.kinds import CRDS, NAMESPACES, Kind, kinds_of
from tests.support.fake_apiserver.lists import Lists
from tests.support.fake_apiserver.request_targets import RequestTarget, find_target, find_verb
from tests.support.fake_apiserver.responses import answer
from tests.support.fake_apiserver.selectors import Matches, selector
from tests.support.fake_apiserver.status_errors import (
    StatusError,
    UnknownPathError,
    bad_request,
    expired,
    future_version,
)
from tests.support.fake_apiserver.storage import Object, Storage
from tests.support.fake_apiserver.watches import Watch, WatchRequest
from tests.support.fake_apiserver.writes import create, delete, find, patch, replace

_LARGEST_BODY = 16 * 1024 * 1024
_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class FakeApiServer:
    """`start` serves it. `requests` are the requests so far, as `verb plural`; `watches` are the running watches.

    `list_queries` are the query parameters of each list, `time_limits` the `timeout` parameters of requests in seconds.
    `below` is its path prefix. `callers` identifies the client of each request: a bearer token, else the common name of
    a client certificate, else an empty string.
    """

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.storage = Storage()
        self.faults = Faults()
        self.bookmark_interval = 60.0
        self.below = ""
        self.requests: list[str] = []
        self.list_queries: list[dict[str, str]] = []
        self.callers: list[str] = []
        self.port = 0
        self._tls = tls
        self._lists = Lists(self.storage)
        self.watches: set[Watch] = set()
        self.watch_lengths: list[float] = []
        self.time_limits: list[float] = []
        self._runner: web.AppRunner | None = None
        self._install()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Starts serving, after a stop at the same port."""
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stops serving; objects are kept."""
        self.cut_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def put(self, kind: Kind, name: str, *, namespace: str = "default", **content: Any) -> Object:
        """Creates an object or replaces its content directly in the storage, without validation."""
        named = {"name": name, "namespace": namespace, "uid": str(uuid.uuid4()), "generation": 1}
        metadata = self.storage.objects(kind).get((namespace, name), {"metadata": named})["metadata"]
        return self.storage.put(kind, {**content, "metadata": metadata})

    def remove(self, kind: Kind, name: str, *, namespace: str = "default") -> Object:
        """Deletes an object directly in the storage."""
        return self.storage.remove(kind, self.storage.objects(kind)[namespace, name])

    def empty_storage(self) -> None:
        """Loses all objects and resets the revision, without events to watches."""
        self.storage.empty()
        self._install()

    def end_watches(self) -> None:
        """Ends all watches as if they timed out."""
        for watch in self.watches:
            watch.end()

    def cut_watches(self) -> None:
        """Closes the connections of all watches."""
        for watch in self.watches:
            watch.cut()

    def fail_watches(self, failure: StatusError) -> None:
        """Ends all watches with an error as their last event."""
        for watch in self.watches:
            watch.end(failure)

    def forget_history(self) -> None:
        """Compacts the history and ends all watches with status 410."""
        self.storage.compact()
        self.fail_watches(expired("The resourceVersion for the provided watch is too old."))

    def _install(self) -> None:
        for name in _NAMESPACES:
            create(self.storage, NAMESPACES, "", {"metadata": {"name": name}})

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            self._authenticate(request)
            target = find_target(request.path.removeprefix(self.below), self.storage.objects(CRDS).values())
            verb = find_verb(request, target)
            self.requests.append(f"{verb} {target.kind.plural}")
            if limit := request.query.get("timeout"):
                self.time_limits.append(float(limit.removesuffix("ms")) / 1000)
            await self.faults.delay(verb, target.kind, target.name)
            self.faults.check_rejections(verb)
            if self.faults.nonsense is not None:
                return web.Response(body=self.faults.nonsense)
            if verb == "watch":
                return await self._watch(request, target)
            done = await self._do(request, verb, target)
            return await answer(request, 201 if verb == "create" else 200, done, self.faults)
        except StatusError as failure:
            return await answer(request, failure.code, failure.status(), self.faults, retry_after=failure.retry_after)
        except UnknownPathError:
            return web.Response(status=404, text="404 page not found\n")

    async def _do(self, request: web.Request, verb: str, target: RequestTarget) -> Object:
        if verb == "list":
            self.list_queries.append(dict(request.query))
            self._check_version(request)
            limit = int(request.query.get("limit", 0))
            token = request.query.get("continue", "")
            return self._lists.page(target.kind, target.namespace, _matches(request), limit=limit, token=token)
        if verb == "get":
            return find(self.storage, target.kind, target.namespace, target.name)
        changed = self._change(verb, target, await _body(request))
        self.faults.lose_response(request, target.kind)
        return changed

    def _check_version(self, request: web.Request) -> None:
        """Rejects a list that must not be older than a state that does not exist yet, as the watch cache does."""
        wanted = int(request.query.get("resourceVersion") or 0)
        if wanted > self.storage.revision:
            raise future_version(wanted, self.storage.revision)

    def _change(self, verb: str, target: RequestTarget, body: Object) -> Object:
        kind, namespace, name, subresource = target
        if verb == "create":
            made = create(self.storage, kind, namespace, body)
            if kind == CRDS:
                asyncio.get_running_loop().call_soon(self._establish, made)
            return made
        find(self.storage, kind, namespace, name)
        self.faults.check_conflict(verb, kind, name)
        if verb == "update":
            return replace(self.storage, kind, namespace, name, body, subresource)
        if verb == "patch":
            return patch(self.storage, kind, namespace, name, body, subresource)
        gone = delete(self.storage, kind, namespace, name, body)
        if kind == CRDS:
            self._withdraw(gone)
        return gone

    def _establish(self, crd: Object) -> None:
        conditions = [{"type": kind, "status": "True"} for kind in ("NamesAccepted", "Established")]
        self.storage.put(CRDS, {**crd, "status": {"conditions": conditions}})

    def _withdraw(self, crd: Object) -> None:
        """Deletes the objects of a deleted definition, then ends their watches."""
        for kind in kinds_of(crd):
            for item in list(self.storage.objects(kind).values()):
                self.storage.remove(kind, item)
            for watch in self.watches:
                if watch.is_of(kind):
                    watch.end()

    def _authenticate(self, request: web.Request) -> None:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.callers.append(token or _common_name(request))
        if self.faults.tokens is not None and token not in self.faults.tokens:
            raise StatusError(401, "Unauthorized", "Unauthorized")

    async def _watch(self, request: web.Request, target: RequestTarget) -> web.StreamResponse:
        asked = self._watch_request(request, target)
        self.watch_lengths.append(asked.seconds)
        too_old = asked.since < self.storage.floor
        if too_old and self.faults.gone_as_status:
            raise expired("too old resource version")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        watch = Watch(asked, self.storage, self.faults, request, response)
        if too_old:
            watch.end(expired(f"too old resource version: {asked.since} ({self.storage.floor})"))
        self.watches.add(watch)
        try:
            await watch.run()
        finally:
            self.watches.discard(watch)
        return response

    def _watch_request(self, request: web.Request, target: RequestTarget) -> WatchRequest:
        since = request.query.get("resourceVersion", "")
        if not since.isdigit():
            raise StatusError(
                500, "", f"resourceVersion: Invalid value: {since!r}: this server requires a resourceVersion"
            )
        return WatchRequest(
            target.kind,
            target.namespace,
            _matches(request),
            int(since),
            float(request.query.get("timeoutSeconds", 1800)),
            self.bookmark_interval if request.query.get("allowWatchBookmarks") == "true" else None,
        )


@asynccontextmanager
async def serve_fake_apiserver(*, tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeApiServer]:
    """Yields a server that runs until the context is left."""
    server = FakeApiServer(tls=tls)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def _common_name(request: web.Request) -> str:
    certificate = request.get_extra_info("peercert") or {}
    names = dict(pair for ((pair),) in certificate.get("subject", ()))
    return str(names.get("commonName", ""))


def _matches(request: web.Request) -> Matches:
    return selector(request.query.get("labelSelector", ""), request.query.get("fieldSelector", ""))


async def _body(request: web.Request) -> Object:
    raw = await request.read()
    if request.method == "PATCH" and request.content_type != "application/merge-patch+json":
        raise StatusError(
            415, "UnsupportedMediaType", f"the body of the request was in an unknown format: {request.content_type}"
        )
    try:
        body: Object = msgspec.json.decode(raw or b"{}", type=dict)
    except msgspec.DecodeError as error:
        raise bad_request(f"the body is no JSON object: {error}") from error
    return body
