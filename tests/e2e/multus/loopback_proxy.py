"""Lets processes in a network namespace reach a server at the loopback of the tests' own, at the same address."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

from tests.support.netns import Netns

_LOOPBACK = "127.0.0.1"
_CHUNK = 65536
_END_TIMEOUT = 10.0


@contextlib.contextmanager
def loopback_proxy(url: str, net: Netns) -> Iterator[None]:
    """Carries connections to the URL, which is at the loopback, over from the namespace until the context is left."""
    port = urlsplit(url).port
    assert port is not None
    with net.inside():
        listener = socket.create_server((_LOOPBACK, port), backlog=128)
    loop = asyncio.new_event_loop()
    ends = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(_carry_all(listener, port, ends),))
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(ends.set)
        thread.join(_END_TIMEOUT)
        loop.close()


async def _carry_all(listener: socket.socket, port: int, ends: asyncio.Event) -> None:
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(task := asyncio.create_task(_carry(port, reader, writer)))
        task.add_done_callback(connections.discard)

    server = await asyncio.start_server(accept, sock=listener)
    await ends.wait()
    server.close()
    for task in connections:
        task.cancel()
    await asyncio.gather(*connections, return_exceptions=True)


async def _carry(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError), contextlib.closing(writer):
        their_reader, their_writer = await asyncio.open_connection(_LOOPBACK, port)
        with contextlib.closing(their_writer):
            await asyncio.gather(_pump(reader, their_writer), _pump(their_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
