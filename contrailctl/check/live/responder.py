"""`contrailctl check respond`: what runs in a temporary pod. Tells who asks which pod it is, and echoes what they send.

It listens on all addresses of the pod, in both families, and needs no right. Connections and what they may send are
bounded, since pods of the checked networks can reach it.
"""

import argparse
import asyncio
import contextlib
import socket

from contrailctl.check.live.wire import PORT
from contrailctl.output import Output

MAX_ECHOED = 65536
"""Bytes of one connection."""

_MAX_CONNECTIONS = 512
_CONNECTION_SECONDS = 30.0


def respond(arguments: argparse.Namespace) -> Output:
    """Answers until the process is ended."""
    asyncio.run(_serve(arguments.identity))
    return Output("", None)


async def _serve(identity: str) -> None:
    slots = asyncio.Semaphore(_MAX_CONNECTIONS)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if slots.locked():  # closed at once: waiting ones would be without bound
            writer.close()
            return
        with contextlib.suppress(OSError, TimeoutError):
            async with slots, asyncio.timeout(_CONNECTION_SECONDS):
                await _answer(identity, reader, writer)
        writer.close()

    server = await asyncio.start_server(answer, sock=_listener(), limit=MAX_ECHOED)
    async with server:
        await server.serve_forever()


async def _answer(identity: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The name goes first: a short packet, so that a way on which long ones are lost is told from none."""
    writer.write(f"{identity}\n".encode())
    await writer.drain()
    left = MAX_ECHOED
    while left > 0 and (data := await reader.read(left)):
        writer.write(data)
        await writer.drain()
        left -= len(data)


def _listener() -> socket.socket:
    """Listens in both families, or in IPv4 alone where the kernel has no IPv6."""
    try:
        return socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_MAX_CONNECTIONS)
    except (OSError, ValueError):
        return socket.create_server(("", PORT), backlog=_MAX_CONNECTIONS)
