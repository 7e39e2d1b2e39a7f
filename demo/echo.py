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
_ANSWER: dict[int, int] = {socket.AF_INET: 0, socket.AF_INET6: 129}
_HEADER_BYTES = 8
_TOKEN_BYTES = 16  # the identifier has 2, too few to tell the requests of a whole matrix from each other


def reaches(
    namespace: str, address: str, *, source: str | None = None, timeout: float = 5, interval: float = 0.2
) -> bool:
    """Returns whether the address answers an echo request from the namespace (a path) within `timeout` seconds.

    Asks every `interval` seconds, from the address `source`, or from one that the kernel chooses. False if the
    namespace does not have the source. Raises NetnsError if the namespace cannot be entered.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    protocol = socket.IPPROTO_ICMPV6 if family == socket.AF_INET6 else socket.IPPROTO_ICMP
    token = secrets.token_bytes(_TOKEN_BYTES)
    with _raw_socket(namespace, family, protocol) as asking:
        try:
            asking.bind((source or "", 0))
        except OSError:
            return False
        asking.settimeout(0)
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(OSError):  # no route, or the kernel reports an earlier unanswered one
                asking.sendto(_request(family, token), (address, 0))
            if _is_answered(asking, family, token, min(interval, left)):
                return True
    return False


def _raw_socket(namespace: str, family: int, protocol: int) -> socket.socket:
    netns = open_netns(namespace)
    try:
        with InNetns(netns):
            return socket.socket(family, socket.SOCK_RAW, protocol)
    finally:
        os.close(netns)


def _is_answered(asking: socket.socket, family: int, token: bytes, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        # A raw socket receives the answers to everybody's requests, and others' requests.
        ready, _, _ = select.select([asking], [], [], left)
        with contextlib.suppress(OSError):
            if ready and _is_answer(asking.recv(2048), family, token):
                return True
    return False


def _request(family: int, token: bytes) -> bytes:
    header = struct.pack("!BBHHH", _REQUEST[family], 0, 0, 0, 1)
    if family == socket.AF_INET6:  # the kernel computes the checksum
        return header + token
    total = sum(struct.unpack(f"!{(len(header) + len(token)) // 2}H", header + token))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return header[:2] + struct.pack("!H", ~total & 0xFFFF) + header[4:] + token


def _is_answer(packet: bytes, family: int, token: bytes) -> bool:
    message = packet[20:] if family == socket.AF_INET else packet
    return message[0] == _ANSWER[family] and message[_HEADER_BYTES:] == token
