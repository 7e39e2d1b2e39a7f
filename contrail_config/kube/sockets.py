"""The sockets that a client opened: none is open when it has ended.

A session waits for the connections that it keeps, but not for those that a cancelled request left behind: over TLS
these wait for the server's farewell, and the event loop may be closed before it comes.
"""

import asyncio
import contextlib
import socket
import weakref

import aiohttp

_PAUSE = 0.001  # seconds
_DEADLINE = 2.0  # seconds; a socket that was shut down is closed by its transport within a turn or two of the loop


class Sockets:
    """Opens sockets for a connector, and knows which of them are still open."""

    def __init__(self) -> None:
        self._opened: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def open(self, address: aiohttp.AddrInfoType) -> socket.socket:
        """Returns a socket for an address as `getaddrinfo` gives it. Raises OSError."""
        family, kind, protocol, *_ = address
        opened = socket.socket(family, kind, protocol)
        self._opened.add(opened)
        return opened

    async def end(self) -> None:
        """Shuts down what is still open, and returns when its transports have closed it, or have had their time."""
        for each in self._still_open():
            with contextlib.suppress(OSError):  # it was never connected, or is no longer
                each.shutdown(socket.SHUT_RDWR)
        give_up = asyncio.get_running_loop().time() + _DEADLINE
        while self._still_open() and asyncio.get_running_loop().time() < give_up:  # noqa: ASYNC110 - nobody sets an event
            await asyncio.sleep(_PAUSE)

    def _still_open(self) -> list[socket.socket]:
        return [each for each in self._opened if each.fileno() != -1]
