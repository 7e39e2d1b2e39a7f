"""A client of `/v1/watch` on a socket of its own, which reads only when a test asks it to."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

DEADLINE = 20.0
"""Seconds, for each step."""

Message = dict[str, Any]


class WatchClient:
    """One stream. `last_id` is the latest id that was read, `status` that of the response."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}
        self.last_id = ""

    async def request(self, query: str, last_id: str) -> None:
        """Sends the request and reads the head of the response."""
        header = f"Last-Event-ID: {last_id}\r\n" if last_id else ""
        self._writer.write(f"GET /v1/watch{query} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n".encode())
        async with asyncio.timeout(DEADLINE):
            await self._writer.drain()
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.status = int(head[0].split()[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}

    async def error(self) -> str:
        """The text of an error response."""
        async with asyncio.timeout(DEADLINE):
            body = await self._reader.readexactly(int(self.headers["content-length"]))
        text = json.loads(body)["error"]
        assert isinstance(text, str)
        return text

    async def event(self) -> Message | None:
        """Reads the next event; one that has only an id is empty. None at the end of the stream."""
        message: Message = {}
        async with asyncio.timeout(DEADLINE):
            while (line := await self._line()) != "":
                if line is None:
                    return None
                key, _, value = line.partition(": ")
                if key == "id":
                    self.last_id = value
                elif key == "data":
                    message = json.loads(value)
        return message

    async def message(self) -> Message:
        """Reads the next message."""
        while not (message := await self.event()):
            assert message is not None, "the stream ended"
        return message

    async def until(self, kind: str) -> list[Message]:
        """Reads messages up to one of this type, and returns them all."""
        found = [await self.message()]
        while found[-1]["type"] != kind:
            found.append(await self.message())
        return found

    async def state(self) -> list[Message]:
        """Reads the whole state, from RESET to SYNCED, and returns its objects."""
        first, *applied, _ = await self.until("SYNCED")
        assert first == {"type": "RESET"}
        assert all(each["type"] == "APPLIED" for each in applied)
        return applied

    async def rest(self) -> list[Message]:
        """Reads to the end of the stream."""
        found = []
        while (message := await self.event()) is not None:
            found += [message] if message else []
        return found

    async def _line(self) -> str | None:
        """The next line of the body, which is chunked; None at its end."""
        line = b""
        while not line.endswith(b"\n"):
            if not self._chunk:
                size = int((await self._reader.readuntil(b"\r\n")).strip() or b"0", 16)
                if size == 0:
                    return None
                self._chunk = await self._reader.readexactly(size)
                await self._reader.readexactly(2)
            end = self._chunk.find(b"\n") + 1 or len(self._chunk)
            line, self._chunk = line + self._chunk[:end], self._chunk[end:]
        return line.decode().rstrip("\n")

    _chunk = b""


@contextlib.asynccontextmanager
async def watching(
    address: tuple[str, int], query: str = "", *, last_id: str = "", receive_buffer: int = 0
) -> AsyncIterator[WatchClient]:
    """Yields a client that has read the head of the response. `receive_buffer`: bytes that its kernel accepts."""
    own = socket.socket()
    if receive_buffer:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    own.setblocking(False)
    async with asyncio.timeout(DEADLINE):
        await asyncio.get_running_loop().sock_connect(own, address)
        # The stream reader pauses its transport above its own limit, so what is not read stays in the kernel.
        reader, writer = await asyncio.open_connection(sock=own, limit=1 << 16)
    client = WatchClient(reader, writer)
    try:
        await client.request(query, last_id)
        yield client
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
