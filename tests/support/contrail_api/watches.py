"""Watches as server-sent events: initial state, then each change with the object as it is when the event is sent."""

import asyncio
from collections.abc import Mapping

import msgspec
from aiohttp import web

from tests.support.contrail_api.api_errors import ApiError
from tests.support.contrail_api.database import Database, Notification
from tests.support.contrail_api.kinds import KINDS, UNDERSCORED, Kind
from tests.support.contrail_api.stored import Object, Stored
from tests.support.contrail_api.views import Views


class WatchSettings:
    """What all watches of a server do; it can be changed while they run."""

    def __init__(self) -> None:
        self.keepalive_interval = 60.0
        self.dropped = 0
        """The next so many events are lost."""

        self.duplicated = 0
        """The next so many events are sent twice."""

        self.resumed = asyncio.Event()
        """Cleared to hold events back."""

        self.resumed.set()


class Watch:
    """One watch. The server never forgets its queue; here that is `queue`."""

    def __init__(self, database: Database, settings: WatchSettings, query: Mapping[str, str]) -> None:
        self._database = database
        self._settings = settings
        self._views = Views(database, None)
        self._kinds, self._silent = _kinds(query)
        self._fields = {
            kind.name: query[key].split(",") for kind in self._kinds if (key := f"{kind.underscored}_fields") in query
        }
        self.queue: asyncio.Queue[Notification | str] = asyncio.Queue()
        self._response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        self._transport: asyncio.Transport | None = None

    def notify(self, notification: Notification) -> None:
        if notification.kind in self._kinds and not self._silent:
            if self._settings.dropped:
                self._settings.dropped -= 1
                return
            self.queue.put_nowait(notification)
            if self._settings.duplicated:
                self._settings.duplicated -= 1
                self.queue.put_nowait(notification)

    def stop(self, problem: str) -> None:
        """Ends the watch with a `stop` event."""
        self.queue.put_nowait(problem)

    def cut(self) -> None:
        """Closes the connection."""
        if self._transport is not None:
            self._transport.abort()

    async def run(self, request: web.Request) -> web.StreamResponse:
        self._transport = request.transport
        self._response.enable_chunked_encoding()
        await self._response.prepare(request)
        for kind in self._kinds:
            items = [{kind.name: self._shown(stored)} for stored in list(self._database.of_kind(kind).values())]
            await self._send("init", {kind.collection: items})
        while True:
            try:
                async with asyncio.timeout(self._settings.keepalive_interval):
                    event = await self.queue.get()
            except TimeoutError:
                await self._response.write(b":\n\n")
                continue
            if isinstance(event, str):
                await self._send("stop", {"error": event})
                return self._response
            await self._settings.resumed.wait()
            await self._send_change(event)

    async def _send_change(self, event: Notification) -> None:
        stored = self._database.objects.get(event.uuid)
        if event.operation == "delete":
            await self._send("delete", {event.kind.name: {"uuid": event.uuid}})
        elif stored is None:
            gone = {"uuid": event.uuid, **dict.fromkeys(self._fields.get(event.kind.name, ()))}
            await self._send("delete", {event.kind.name: gone})
        else:
            parent = {} if stored.parent else {"parent_type": None, "parent_uuid": None}
            shown = self._shown(stored) | (parent if event.kind.name in self._fields else {})
            await self._send(event.operation, {event.kind.name: shown})

    def _shown(self, stored: Stored) -> Object:
        fields = self._fields.get(stored.kind.name)
        if fields is not None:
            return self._views.fields(stored, fields)
        return self._views.whole(stored) | self._views.back_references(stored) | self._views.children(stored)

    async def _send(self, event: str, data: Object) -> None:
        await self._response.write(b"event: %s\ndata: %s\n\n" % (event.encode(), msgspec.json.encode(data)))


def _kinds(query: Mapping[str, str]) -> tuple[list[Kind], bool]:
    """Returns the types of a watch, and whether one has hyphens: then no event is ever sent. Raises ApiError."""
    names = [name for name in query.get("resource_type", "").split(",") if name]
    if not names:
        raise ApiError(400, "resource_type required in request")
    for name in names:
        if name not in UNDERSCORED and name not in KINDS:
            raise ApiError(404, f"Invalid Contrail resource type:'{name}'")
    return [UNDERSCORED.get(name) or KINDS[name] for name in names], any("-" in name for name in names)
