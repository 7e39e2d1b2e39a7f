"""Notifications of the kernel about entries for neighbours and forwarding, with the time when each one came."""

import contextlib
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Iterator

from tests.support.netns import inside

_SO_RCVBUFFORCE = 33
_RTMGRP_NEIGH = 1 << 2
_RTM_NEWNEIGH = 28
_NDA_LLADDR = 2
_MESSAGE_BYTES, _FIELD_BYTES, _ATTRIBUTE_BYTES = 16, 12, 4
_POLL = 0.2  # seconds


class NeighbourNotices:
    """The times (`time.perf_counter`) of entries that lead to each MAC, in the network namespace at a path."""

    def __init__(self, netns: str) -> None:
        self.times: dict[str, list[float]] = defaultdict(list)
        with inside(netns):
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 24)
        self._socket.bind((0, _RTMGRP_NEIGH))
        self._socket.settimeout(_POLL)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="neighbour-notices")

    @contextlib.contextmanager
    def running(self) -> Iterator["NeighbourNotices"]:
        """Receives while inside, in a thread of its own."""
        self._thread.start()
        try:
            yield self
        finally:
            self._ending.set()
            self._thread.join()
            self._socket.close()

    def _run(self) -> None:
        while not self._ending.is_set():
            with contextlib.suppress(TimeoutError):
                datagram = self._socket.recv(1 << 16)
                now = time.perf_counter()
                for mac in _macs(datagram):
                    self.times[mac].append(now)


def _macs(datagram: bytes) -> Iterator[str]:
    """Yields the MAC of each new entry."""
    while datagram:
        length, kind = struct.unpack_from("=IH", datagram)
        if kind == _RTM_NEWNEIGH:
            yield from _mac(datagram[_MESSAGE_BYTES + _FIELD_BYTES : length])
        datagram = datagram[_aligned(length) :]


def _mac(attributes: bytes) -> Iterator[str]:
    while attributes:
        length, kind = struct.unpack_from("=HH", attributes)
        if kind == _NDA_LLADDR:
            yield attributes[_ATTRIBUTE_BYTES:length].hex(":")
        attributes = attributes[_aligned(length) :]


def _aligned(length: int) -> int:
    return (length + 3) & ~3
