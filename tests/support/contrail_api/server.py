"""The server: routing of requests to reads, lists, writes, actions and watches."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.support.contrail_api.actions import Actions
from tests.support.contrail_api.address_manager import AddressManager
from tests.support.contrail_api.api_errors import ApiError, unknown_id
from tests.support.contrail_api.authentication import Authentication, NoAuthentication
from tests.support.contrail_api.begun_writes import BegunWrites
from tests.support.contrail_api.behaviour import Behaviour
from tests.support.contrail_api.bodies import LARGEST, read_json, unwrap
from tests.support.contrail_api.bootstrap import install
from tests.support.contrail_api.connection_limit import ConnectionLimit, ObservedRunner
from tests.support.contrail_api.database import Database
from tests.support.contrail_api.faults import Faults
from tests.support.contrail_api.home_page import home_page
from tests.support.contrail_api.instance_ips import InstanceIps
from tests.support.contrail_api.kinds import COLLECTIONS, KINDS, Kind, find_kind
from tests.support.contrail_api.lists import list_objects
from tests.support.contrail_api.network_ipams import NetworkIpams
from tests.support.contrail_api.pauses import Pauses
from tests.support.contrail_api.projects import Projects
from tests.support.contrail_api.stored import Object
from tests.support.contrail_api.views import Views
from tests.support.contrail_api.virtual_machine_interfaces import VirtualMachineInterfaces
from tests.support.contrail_api.virtual_networks import VirtualNetworks
from tests.support.contrail_api.watches import Watch, WatchSettings
from tests.support.contrail_api.writes import Writes, find


class ContrailApi:
    """`start` serves it. Several servers may share a database. `requests` are `METHOD /path` so far."""

    def __init__(
        self,
        database: Database | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        authentication: Authentication | None = None,
    ) -> None:
        self.database = database or _new_database()
        self.faults = Faults()
        self.pauses = Pauses()
        self.connections = ConnectionLimit()
        self.watch_settings = WatchSettings()
        self.watches: set[Watch] = set()
        self.has_watch = True
        self.requests: list[str] = []
        self.port = 0
        self._tls = tls
        self._authentication = authentication or NoAuthentication()
        self._runner: web.AppRunner | None = None
        self._begun = BegunWrites()
        behaviours = _behaviours(self.database)
        self._writes = Writes(self.database, behaviours, self.pauses)
        self._actions = Actions(self.database, behaviours, self._writes, self.pauses)

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Starts serving, after a stop at the same port."""
        app = web.Application(client_max_size=2 * LARGEST)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = ObservedRunner(app, self.connections, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stops serving; objects are kept."""
        self.cut_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._begun.cancel()
            self._runner = None

    def cut_watches(self) -> None:
        """Closes the connections of all watches."""
        for watch in self.watches:
            watch.cut()

    def stop_watches(self, problem: str) -> None:
        """Ends all watches with a `stop` event."""
        for watch in self.watches:
            watch.stop(problem)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        await self.connections.admit(request.protocol)
        self.requests.append(f"{request.method} {request.path}")
        try:
            await self.faults.before(request)
            response = await self._answer(request)
            self.faults.after(request)
        except ApiError as failure:
            return failure.response()
        else:
            return response

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path[1:]
        base = f"{request.scheme}://{request.host}"
        if not path:
            return web.json_response(home_page(base, has_watch=self.has_watch))
        self._authentication.check(request)
        if path == "watch" and self.has_watch:
            return await self._watch(request)
        if path == "list-bulk-collection":
            _allow(request, "POST")
            return web.json_response(self._bulk_list(await read_json(request), base))
        if (action := self._actions.by_path.get(path)) is not None:
            _allow(request, "POST")
            return _response(await self._begun.complete(action(await read_json(request))))
        if (kind := COLLECTIONS.get(path)) is not None:
            return await self._collection(request, kind, base)
        name, separator, uuid = path.partition("/")
        if name in KINDS and separator and "/" not in uuid and uuid:
            return await self._resource(request, KINDS[name], uuid, base)
        raise ApiError(404, f"Not found: '{request.path}'")

    async def _collection(self, request: web.Request, kind: Kind, base: str) -> web.Response:
        _allow(request, "GET", "HEAD", "POST")
        if request.method != "POST":
            return web.json_response(list_objects(self.database, kind, request.query, base))
        stored = await self._begun.complete(self._writes.create(kind, unwrap(kind, await read_json(request))))
        return web.json_response({kind.name: Views(self.database, base).created(stored)})

    async def _resource(self, request: web.Request, kind: Kind, uuid: str, base: str) -> web.Response:
        _allow(request, "DELETE", "GET", "HEAD", "PUT")
        if request.method == "DELETE":
            await self._begun.complete(self._writes.delete(kind, uuid, base))
            return _response(None)
        if request.method != "PUT":
            return self._read(request, kind, uuid, base)
        if not request.can_read_body:
            return _response(None)  # also for an unknown uuid
        await self._begun.complete(self._writes.update(kind, uuid, unwrap(kind, await read_json(request))))
        return web.json_response({kind.name: {"uuid": uuid, "href": f"{base}/{kind.name}/{uuid}"}})

    def _read(self, request: web.Request, kind: Kind, uuid: str, base: str) -> web.Response:
        query = request.query
        if not _is_canonical(uuid):
            raise unknown_id(uuid)
        stored = find(self.database, kind, uuid)
        etag = f'"{stored.last_modified}"'
        if request.headers.get("If-None-Match", "").strip('"') == stored.last_modified:
            return web.Response(status=304)
        views = Views(self.database, None if "exclude_hrefs" in query else base)
        if fields := [field for field in query.get("fields", "").split(",") if field]:
            shown = views.fields(stored, {*fields, "id_perms", "name"})
        else:
            shown = views.whole(stored)
            shown |= {} if "exclude_back_refs" in query else views.back_references(stored)
            shown |= {} if "exclude_children" in query else views.children(stored)
        return web.json_response({kind.name: shown}, headers={"ETag": etag})

    def _bulk_list(self, body: Object, base: str) -> Object:
        kind = find_kind(body.get("type", ""))
        if kind is None:
            raise ApiError(404, f"Resource type '{body.get('type')}' not found")
        ignored = ("type", "fq_names")
        return list_objects(self.database, kind, {key: body[key] for key in body if key not in ignored}, base)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        watch = Watch(self.database, self.watch_settings, request.query)
        self.database.observers.append(watch.notify)  # before it reads, and for ever
        self.watches.add(watch)
        try:
            return await watch.run(request)
        finally:
            self.watches.discard(watch)


@asynccontextmanager
async def serve_contrail_api(
    database: Database | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    authentication: Authentication | None = None,
) -> AsyncIterator[ContrailApi]:
    """Yields a server that runs until the context is left."""
    server = ContrailApi(database, tls=tls, authentication=authentication)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def _new_database() -> Database:
    database = Database()
    install(database)
    return database


def _behaviours(database: Database) -> dict[str, Behaviour]:
    addresses = AddressManager(database)
    special: dict[str, Behaviour] = {
        "instance-ip": InstanceIps(database, addresses),
        "network-ipam": NetworkIpams(database),
        "project": Projects(database),
        "virtual-machine-interface": VirtualMachineInterfaces(database),
        "virtual-network": VirtualNetworks(database, addresses),
    }
    return {kind: special.get(kind) or Behaviour(database) for kind in KINDS}


def _allow(request: web.Request, *methods: str) -> None:
    if request.method not in methods:
        raise ApiError(405, "Method not allowed.", headers={"Allow": ",".join(methods)})


def _response(body: Object | None) -> web.Response:
    """Returns a response; None is an empty body of type `text/html`."""
    return web.Response(content_type="text/html") if body is None else web.json_response(body)


def _is_canonical(uuid: str) -> bool:
    return len(uuid) == 36 and uuid == uuid.lower() and uuid.count("-") == 4
