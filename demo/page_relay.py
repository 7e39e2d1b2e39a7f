"""Relays connections to the page of a kept node, which listens in the node's network namespace, where no browser is.

Started in that namespace with a socket that listens outside of it, as `python -m demo.page_relay SOCKET URL PID`. It
ends with the node's process PID.
"""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from functools import partial
from urllib.parse import urlsplit

from demo.resources import DemoResources

_CHUNK = 1 << 16
_MAX_CONNECTIONS = 64

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def listening_socket() -> socket.socket:
    """Returns a socket that listens on a free port of the loopback interface in the caller's network namespace."""
    return socket.create_server(("127.0.0.1", 0))


def start_relay(listening: socket.socket, url: str, *, node: int, resources: DemoResources) -> str:
    """Starts the relay in the caller's network namespace and returns the address of the page outside of it."""
    command = [sys.executable, "-m", "demo.page_relay", str(listening.fileno()), url, str(node)]
    with open(resources.log_file, "ab") as log:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[listening.fileno()],
            start_new_session=True,  # it goes on after the demo
        )
    host, port = listening.getsockname()
    return f"http://{host}:{port}/"


async def relay(listening: socket.socket, host: str, port: int, *, node: int) -> None:
    """Relays connections until the process ends."""
    ended = asyncio.Event()
    process = os.pidfd_open(node)
    asyncio.get_running_loop().add_reader(process, ended.set)
    slots = asyncio.Semaphore(_MAX_CONNECTIONS)
    server = await asyncio.start_server(partial(_serve, host, port, slots), sock=listening)
    await ended.wait()
    server.close()


async def _serve(
    host: str, port: int, slots: asyncio.Semaphore, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    async with slots:
        try:
            with contextlib.suppress(OSError):
                target = await asyncio.open_connection(host, port)
                await _connect((reader, writer), target)
        finally:
            writer.close()


async def _connect(client: Streams, target: Streams) -> None:
    """Copies in both directions until one side has ended: the other one has nothing to say to it then."""
    copies = [asyncio.create_task(_copy(client[0], target[1])), asyncio.create_task(_copy(target[0], client[1]))]
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        target[1].close()
        for copy in copies:
            copy.cancel()
        await asyncio.gather(*copies, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(_CHUNK):
        target.write(data)
        await target.drain()


if __name__ == "__main__":
    _descriptor, _url, _node = sys.argv[1:]
    _address = urlsplit(_url)
    asyncio.run(
        relay(socket.socket(fileno=int(_descriptor)), _address.hostname or "", _address.port or 0, node=int(_node))
    )
