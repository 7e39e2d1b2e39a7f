"""Sockets of one aiohttp connector: the kernel notices a dead peer, and none of them outlives the client."""

import asyncio
import contextlib
import socket
import weakref
from typing import Final

import aiohttp

_CLOSE_POLL = 0.001  # seconds
_CLOSE_DEADLINE = 2.0  # seconds; a transport closes a socket that was shut down within a few iterations of the loop

_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)
"""Options by which the kernel ends an idle connection after 45 s without a sign of its peer, as client-go does."""


class Sockets:
    """Sockets of one aiohttp connector, so that none of them outlives the client.

    A session closes the connections in its pool, but not those that a cancelled request left behind: over TLS these
    wait for the server's close_notify, and the event loop may be closed before it arrives.
    """

    def __init__(self) -> None:
        self._opened: weakref.WeakSet[socket.socket] = weakref.WeakSet()  # a closed socket is dropped by itself

    def open(self, address: aiohttp.AddrInfoType) -> socket.socket:
        """Returns a socket for an address of `getaddrinfo`. Raises OSError."""
        family, kind, protocol, *_ = address
        opened = socket.socket(family, kind, protocol)
        for level, option, value in _KEEPALIVE:
            opened.setsockopt(level, option, value)
        self._opened.add(opened)
        return opened

    async def close(self) -> None:
        """Shuts down the open sockets and waits until their transports have closed them, for a bounded time."""
        for each in self._still_open():
            with contextlib.suppress(OSError):  # never connected, or disconnected already
                each.shutdown(socket.SHUT_RDWR)
        give_up = asyncio.get_running_loop().time() + _CLOSE_DEADLINE
        while self._still_open() and asyncio.get_running_loop().time() < give_up:  # noqa: ASYNC110 - transports set no event
            await asyncio.sleep(_CLOSE_POLL)

    def _still_open(self) -> list[socket.socket]:
        return [each for each in self._opened if each.fileno() != -1]
