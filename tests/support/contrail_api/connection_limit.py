"""Limit of connections: a further one connects, but gets no answer until another closes."""

import asyncio
from typing import Any

from aiohttp import web

MAX_CONNECTIONS = 1024
"""Of one server process; idle ones and watches count."""


class ConnectionLimit:
    """Admits connections in the order of their first requests. `most` is the largest number at one time."""

    def __init__(self) -> None:
        self.limit = MAX_CONNECTIONS
        self.most = 0
        self._admitted: set[Any] = set()
        self._closed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._admitted)

    async def admit(self, connection: Any) -> None:
        """Waits until the connection may be served."""
        while connection not in self._admitted and len(self._admitted) >= self.limit:
            self._closed.clear()
            await self._closed.wait()
        self._admitted.add(connection)
        self.most = max(self.most, len(self._admitted))

    def forget(self, connection: Any) -> None:
        """Notes that a connection closed."""
        self._admitted.discard(connection)
        self._closed.set()


class ObservedRunner(web.AppRunner):
    """Runner that tells a limit of connections that close."""

    def __init__(self, app: web.Application, limit: ConnectionLimit, **options: Any) -> None:
        super().__init__(app, **options)
        self._limit = limit

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        connection_lost = server.connection_lost

        def note(handler: Any, exc: BaseException | None = None) -> None:
            connection_lost(handler, exc)
            self._limit.forget(handler)

        server.connection_lost = note  # type: ignore[method-assign]  # aiohttp has no public hook for it
        return server
