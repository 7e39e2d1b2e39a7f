"""A stream of echo requests at a high rate, which counts the requests that were not answered."""

import contextlib
import itertools
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

_SECONDS = 5.0  # that the last answers may take
_SO_RCVBUFFORCE = 33  # beyond the limit of other users, so that answers survive a pause of the thread
_NUMBERS = 1 << 16  # a sequence number has 16 bits
_identifiers = itertools.count(1)


class Namespace(Protocol):
    """A network namespace, such as a `Netns`."""

    def inside(self) -> AbstractContextManager[None]:
        """Moves the current thread into it."""


class EchoStream:
    """Sends an echo request each `interval` seconds from a namespace, in a thread of its own."""

    def __init__(self, namespace: Namespace, address: str, *, interval: float = 0.001) -> None:
        self._address, self._interval = address, interval
        self._request, self._answer, family, protocol = (
            (128, 129, socket.AF_INET6, socket.IPPROTO_ICMPV6)
            if ":" in address
            else (8, 0, socket.AF_INET, socket.IPPROTO_ICMP)
        )
        with namespace.inside():
            self._socket = socket.socket(family, socket.SOCK_RAW, protocol)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 22)
        self._identifier = next(_identifiers) % _NUMBERS
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="echo-stream")
        self.sent = 0
        self.unsent: list[str] = []
        self._answered: set[int] = set()

    @contextlib.contextmanager
    def running(self) -> Iterator["EchoStream"]:
        """Sends while inside, and waits for the last answers."""
        self._thread.start()
        try:
            yield self
        finally:
            self._ending.set()
            self._thread.join()
            self._socket.close()

    def lost(self) -> int:
        """Number of requests without an answer, or that could not be sent; after the end."""
        return self.sent - len(self._answered) + len(self.unsent)

    def gaps(self) -> str:
        """The unanswered requests and the errors of sending, for a failure's message."""
        missing = sorted(set(range(self.sent)) - self._answered)
        return f"{self.sent} sent, unanswered: {missing[:20]}, errors: {self.unsent[:5]}"

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._socket.sendto(self._message(self.sent % _NUMBERS), (self._address, 0))
                self.sent += 1
            except OSError as error:
                self.unsent.append(str(error))
            self._receive(self._interval)
        deadline = time.monotonic() + _SECONDS
        while len(self._answered) < self.sent and time.monotonic() < deadline:
            self._receive(0.05)

    def _receive(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while select.select([self._socket], [], [], max(0.0, end - time.monotonic()))[0]:
            packet = self._socket.recv(2048)
            message = packet if self._request == 128 else packet[20:]
            kind, _, _, identifier, sequence = struct.unpack_from("!BBHHH", message)
            if (kind, identifier) == (self._answer, self._identifier):
                latest = self.sent - 1
                self._answered.add(latest - (latest - sequence) % _NUMBERS)

    def _message(self, sequence: int) -> bytes:
        header = struct.pack("!BBHHH", self._request, 0, 0, self._identifier, sequence)
        total = sum(struct.unpack("!4H", header))
        checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
        return header[:2] + struct.pack("!H", checksum) + header[4:]  # for ICMPv6 the kernel computes it
