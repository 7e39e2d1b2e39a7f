"""TCP proxy: makes a loopback server of the tests reachable in another network namespace at the same address."""

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
    """Forwards connections from the namespace to the loopback URL until the context is left."""
    port = urlsplit(url).port
    assert port is not None
    with net.inside():
        listener = socket.create_server((_LOOPBACK, port), backlog=128)
    loop = asyncio.new_event_loop()
    stopped = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(_forward_all(listener, port, stopped),))
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join(_END_TIMEOUT)
        loop.close()


async def _forward_all(listener: socket.socket, port: int, stopped: asyncio.Event) -> None:
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(task := asyncio.create_task(_forward(port, reader, writer)))
        task.add_done_callback(connections.discard)

    server = await asyncio.start_server(accept, sock=listener)
    await stopped.wait()
    server.close()
    for task in connections:
        task.cancel()
    await asyncio.gather(*connections, return_exceptions=True)


async def _forward(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError), contextlib.closing(writer):
        their_reader, their_writer = await asyncio.open_connection(_LOOPBACK, port)
        with contextlib.closing(their_writer):
            await asyncio.gather(_copy(reader, their_writer), _copy(their_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
