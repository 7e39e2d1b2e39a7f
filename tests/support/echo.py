"""ICMP and ICMPv6 echo between network namespaces, without a `ping` command."""

import contextlib
import os
import select
import socket
import struct
import time

from tests.support.netns import Netns

_REQUEST: dict[int, int] = {socket.AF_INET: 8, socket.AF_INET6: 128}


def reaches(namespace: Netns, address: str, *, timeout: float = 5, interval: float = 0.2) -> bool:
    """Whether an echo request from the namespace is answered within `timeout` seconds; asks every `interval`."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    protocol = socket.IPPROTO_ICMPV6 if family == socket.AF_INET6 else socket.IPPROTO_ICMP
    with namespace.inside():
        asking = socket.socket(family, socket.SOCK_RAW, protocol)
    identifier = os.getpid() & 0xFFFF
    with asking:
        asking.setblocking(False)
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(OSError):  # no route, or the kernel reports an earlier unanswered one
                asking.sendto(_request(family, identifier), (address, 0))
            ready, _, _ = select.select([asking], [], [], min(interval, left))
            if ready and _is_answer(asking.recv(2048), family, identifier):
                return True
    return False


def _request(family: int, identifier: int) -> bytes:
    header = struct.pack("!BBHHH", _REQUEST[family], 0, 0, identifier, 1)
    if family == socket.AF_INET6:  # the kernel computes the checksum
        return header
    total = sum(struct.unpack("!4H", header))
    return header[:2] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + header[4:]


def _is_answer(packet: bytes, family: int, identifier: int) -> bool:
    message = packet[20:] if family == socket.AF_INET else packet
    answer = 0 if family == socket.AF_INET else 129
    kind, _, _, found, _ = struct.unpack_from("!BBHHH", message)
    return (kind, found) == (answer, identifier)
