"""Echo requests (ICMP, RFC 792, and ICMPv6, RFC 4443) from a network namespace, without a `ping` command."""

import contextlib
import os
import secrets
import select
import socket
import struct
import time

from cni_contrail.link.netns import InNetns, open_netns

_REQUEST: dict[int, int] = {socket.AF_INET: 8, socket.AF_INET6: 128}


def reaches(
    namespace: str, address: str, *, source: str | None = None, timeout: float = 5, interval: float = 0.2
) -> bool:
    """Returns whether the address answers an echo request from the namespace (a path) within `timeout` seconds.

    Asks every `interval` seconds, from the address `source`, or from one that the kernel chooses. False if the
    namespace does not have the source. Raises NetnsError if the namespace cannot be entered.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    protocol = socket.IPPROTO_ICMPV6 if family == socket.AF_INET6 else socket.IPPROTO_ICMP
    identifier = secrets.randbelow(1 << 16)
    with _raw_socket(namespace, family, protocol) as asking:
        try:
            asking.bind((source or "", 0))
        except OSError:
            return False
        asking.settimeout(0)
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(OSError):  # no route, or the kernel reports an earlier unanswered one
                asking.sendto(_request(family, identifier), (address, 0))
            if _is_answered(asking, family, identifier, min(interval, left)):
                return True
    return False


def _raw_socket(namespace: str, family: int, protocol: int) -> socket.socket:
    netns = open_netns(namespace)
    try:
        with InNetns(netns):
            return socket.socket(family, socket.SOCK_RAW, protocol)
    finally:
        os.close(netns)


def _is_answered(asking: socket.socket, family: int, identifier: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        # A raw socket receives the answers to everybody's requests, and others' requests.
        ready, _, _ = select.select([asking], [], [], left)
        with contextlib.suppress(OSError):
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
