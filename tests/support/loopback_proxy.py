"""TCP proxy: makes a loopback server reachable in another network namespace, or closes its connections on demand."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Iterator
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


class Forwarder:
    """Forwards each accepted connection to a loopback port."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connections: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forwards a connection, as the callback of `asyncio.start_server`."""
        self._connections.add(task := asyncio.create_task(self._forward(reader, writer)))
        task.add_done_callback(self._connections.discard)

    async def close_connections(self) -> None:
        """Closes all connections so far."""
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            their_reader, their_writer = await asyncio.open_connection(_LOOPBACK, self._port)
            with contextlib.closing(their_writer):
                await asyncio.gather(_copy(reader, their_writer), _copy(their_reader, writer))


@contextlib.asynccontextmanager
async def forwarding(listener: socket.socket, port: int) -> AsyncIterator[Forwarder]:
    """Forwards what connects to the listener until the context is left."""
    forwarder = Forwarder(port)
    server = await asyncio.start_server(forwarder.accept, sock=listener)
    try:
        yield forwarder
    finally:
        server.close()
        await forwarder.close_connections()


async def _forward_all(listener: socket.socket, port: int, stopped: asyncio.Event) -> None:
    async with forwarding(listener, port):
        await stopped.wait()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
