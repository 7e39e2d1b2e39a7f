"""Watches of a Contrail API server in tests: the raw frames, decoded."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from aiohttp import StreamReader

from tests.support.contrail_callers import Caller


class Frame(NamedTuple):
    """An event with its data; a keep-alive has an empty name."""

    event: str
    data: dict[str, Any]


class Frames:
    """Frames of one watch, as they come."""

    def __init__(self, content: StreamReader) -> None:
        self._content = content

    async def next(self) -> Frame:
        """Returns the next frame. Raises EOFError at the end."""
        event = ""
        data: dict[str, Any] = {}
        while line := await self._content.readline():
            text = line.decode().rstrip("\n")
            if not text or text == ":":
                if event or text == ":":
                    return Frame(event, data)
                continue
            name, _, value = text.partition(": ")
            if name == "event":
                event = value
            else:
                data = msgspec.json.decode(value)
        raise EOFError

    async def next_of(self, uuid: str) -> Frame:
        """Returns the next event of an object; its data is the object."""
        while True:
            frame = await self.next()
            for item in frame.data.values():
                if isinstance(item, dict) and item.get("uuid") == uuid:
                    return Frame(frame.event, item)


@asynccontextmanager
async def watching(caller: Caller, types: str, **query: str) -> AsyncIterator[Frames]:
    """Yields the frames of a watch."""
    async with caller.session.get(f"{caller.url}/watch", params={"resource_type": types, **query}) as response:
        assert response.status == 200
        assert response.headers["Content-Type"].startswith("text/event-stream")
        yield Frames(response.content)
