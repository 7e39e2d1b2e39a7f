"""HTTP client that sends arbitrary bytes at arbitrary moments and reads responses one by one."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

DEADLINE = 10.0  # seconds for each step


class RawResponse(NamedTuple):
    """One response; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The error text; checks that the body is JSON with the single key `error`."""
        assert self.headers["content-type"] == "application/json; charset=UTF-8"
        ((key, text),) = self.json.items()
        assert key == "error"
        assert isinstance(text, str)
        return text


class RawConnection:
    """One connection; every operation has a deadline."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        async with asyncio.timeout(DEADLINE):
            await self._writer.drain()

    async def answer(self) -> RawResponse:
        """Reads the next response."""
        async with asyncio.timeout(DEADLINE):
            head = await self._reader.readuntil(b"\r\n\r\n")
            status, *lines = head.decode().rstrip().split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            body = await self._reader.readexactly(int(headers["content-length"]))
        return RawResponse(int(status.split()[1]), headers, body)

    async def line(self) -> bytes:
        """Reads the next line, including its line ending."""
        async with asyncio.timeout(DEADLINE):
            return await self._reader.readline()

    async def is_closed(self) -> bool:
        """Waits until the peer closes; whether it sent nothing before."""
        async with asyncio.timeout(DEADLINE):
            try:
                return await self._reader.read() == b""
            except ConnectionResetError:
                return True

    async def ends(self) -> bool:
        """Waits until the peer closes and discards what it sends before."""
        await self.is_closed()
        return True

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


@contextlib.asynccontextmanager
async def connected(address: tuple[str, int]) -> AsyncIterator[RawConnection]:
    """Yields a connection and closes it afterwards."""
    connection = RawConnection(*await asyncio.open_connection(*address))
    try:
        yield connection
    finally:
        await connection.close()


async def exchanged(address: tuple[str, int], data: bytes) -> RawResponse:
    """Sends bytes over a new connection and returns the first response."""
    async with connected(address) as connection:
        await connection.send(data)
        return await connection.answer()


def request(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    """An encoded request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: agent", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
