"""Stores on which the tests of the manager run, each with a log of events; to add one, add an entry to ENGINES."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import Event
from contrail_config.store import EventLog, EventPage, Store
from contrail_config.vnc.client import VncAccess, VncClient, connect
from contrail_config.vnc.store import VncStore
from manager.source import IdentityLog
from tests.support.contrail_api.server import serve_contrail_api


class StoreWithEvents(Store, EventLog, IdentityLog, Protocol):
    """A store of objects, and logs of events and of the uids of manifests."""


MakePlace = Callable[[Path], AbstractAsyncContextManager[str]]
"""Makes a place for a store, with files below the folder, until the context is left: the argument of `open_at`."""


class VncStoreWithEvents(VncStore):
    """A store on a Contrail API server beside a `file` with events and uids, as a machine with manifests has both."""

    def __init__(self, client: VncClient, *, file: SqliteStore, **options: Any) -> None:
        super().__init__(client, **options)
        self._file = file

    async def record_event(self, event: Event) -> Event:
        return await self._file.record_event(event)

    async def events(
        self, *, kind: str | None = None, namespace: str | None = None, name: str | None = None
    ) -> list[Event]:
        return await self._file.events(kind=kind, namespace=namespace, name=name)

    async def event_page(self, *, namespace: str | None, limit: int, token: str | None) -> EventPage:
        return await self._file.event_page(namespace=namespace, limit=limit, token=token)

    async def identities(self) -> dict[tuple[str, str, str], str]:
        return await self._file.identities()

    async def remember_identity(self, kind: str, namespace: str, name: str, uid: str) -> None:
        await self._file.remember_identity(kind, namespace, name, uid)

    async def forget_identity(self, kind: str, namespace: str, name: str) -> None:
        await self._file.forget_identity(kind, namespace, name)


@asynccontextmanager
async def embedded_store(path: Path) -> AsyncIterator[SqliteStore]:
    """Opens a store in a file until the context is left."""
    store = await SqliteStore.open(path)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def contrail_store(url: str) -> AsyncIterator[VncStoreWithEvents]:
    """Opens a store on a Contrail API server, with what its writer runs beside it, until the context is left."""
    with tempfile.TemporaryDirectory() as folder:
        async with (
            embedded_store(Path(folder) / "events.db") as file,
            connect(VncAccess((url,)), deadline=10) as client,
        ):
            store = VncStoreWithEvents(client, file=file, cluster="k8s")
            await store.start()
            maintenance = asyncio.create_task(store.maintain())
            try:
                yield store
            finally:
                maintenance.cancel()
                await asyncio.wait([maintenance])
                await store.close()


def open_at(place: str) -> AbstractAsyncContextManager[StoreWithEvents]:
    """Opens a store at a place: the URL of a Contrail API server, or the path of a file."""
    return contrail_store(place) if place.startswith("http") else embedded_store(Path(place))


@asynccontextmanager
async def file_place(folder: Path) -> AsyncIterator[str]:
    """Yields the path of a file that does not exist yet."""
    yield str(folder / "store" / "config.db")


@asynccontextmanager
async def contrail_place(_folder: Path) -> AsyncIterator[str]:
    """Yields the URL of an empty Contrail API server."""
    async with serve_contrail_api() as server:
        yield server.url


ENGINES: dict[str, MakePlace] = {"embedded": file_place, "vnc": contrail_place}
