"""Echo requests to many addresses at once: those that must not answer take no longer than one."""

import contextlib
import itertools
import select
import socket
import struct
import time
from collections.abc import Collection
from typing import Self

from tests.support.netns import Netns

_ROUND = 0.5  # seconds until those that have not answered are asked again
_identifiers = itertools.count(1)


def answering(namespace: Netns, addresses: Collection[str], *, timeout: float = 2) -> set[str]:
    """The addresses, of both families, that answer an echo request from the namespace within `timeout` seconds."""
    with contextlib.ExitStack() as stack, namespace.inside():
        asking = [
            stack.enter_context(_Asking(family, {each for each in addresses if mark in each}))
            for family, mark in ((socket.AF_INET, "."), (socket.AF_INET6, ":"))
        ]
        deadline = time.monotonic() + timeout
        while any(each.missing for each in asking) and time.monotonic() < deadline:
            for each in asking:
                each.ask()
            _receive(asking, min(time.monotonic() + _ROUND, deadline))
    return set(addresses) - {address for each in asking for address in each.missing}


def _receive(asking: list["_Asking"], until: float) -> None:
    by_socket = {each.socket: each for each in asking}
    while any(each.missing for each in asking) and (left := until - time.monotonic()) > 0:
        for ready in select.select(list(by_socket), [], [], left)[0]:
            by_socket[ready].receive()


class _Asking:
    """Requests of one family; `missing` are the addresses that have not answered."""

    def __init__(self, family: int, addresses: set[str]) -> None:
        self.missing = addresses
        self._family = family
        protocol = socket.IPPROTO_ICMP if family == socket.AF_INET else socket.IPPROTO_ICMPV6
        self.socket = socket.socket(family, socket.SOCK_RAW, protocol)
        self.socket.settimeout(0)
        self._identifier = next(_identifiers) % (1 << 16)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self) -> None:
        for address in self.missing:
            with contextlib.suppress(OSError):  # no route, or the kernel reports an earlier request without an answer
                self.socket.sendto(self._request(), (address, 0))

    def receive(self) -> None:
        with contextlib.suppress(OSError):  # the kernel reports an earlier request without an answer
            packet, sender = self.socket.recvfrom(2048)
            message, answer = (packet[20:], 0) if self._family == socket.AF_INET else (packet, 129)
            kind, _, _, identifier = struct.unpack_from("!BBHH", message)
            if (kind, identifier) == (answer, self._identifier):
                self.missing.discard(sender[0])

    def _request(self) -> bytes:
        if self._family == socket.AF_INET6:  # the kernel computes the checksum
            return struct.pack("!BBHHH", 128, 0, 0, self._identifier, 1)
        total = 0x0800 + self._identifier + 1
        return struct.pack("!BBHHH", 8, 0, ~(total + (total >> 16)) & 0xFFFF, self._identifier, 1)
