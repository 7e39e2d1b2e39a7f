"""Probes of the way to other nodes: echo requests that must not be fragmented, as long as the longest packet.

The MTU of a link, or of a route, may promise more than the way carries: then short packets arrive and long ones are
lost. A probe between the addresses of tunnels is as long as the packet around a pod's longest one, and one through a
tunnel, between addresses of nodes at index 0, as long as a pod's. A short one beside it tells a way that is too narrow
from a node that does not answer at all.

Sources: ip(7), icmp(7), linux/icmp.h, linux/icmpv6.h.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from enum import Enum

from cni_contrail.datapath.underlay_mtu import OVERHEAD
from cni_contrail.link.errors import LinkError
from cni_contrail.link.named_tuple import NamedTuple

_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER, _IPV6_DONTFRAG = 10, 23, 62
_PROBE = 3  # IP_PMTUDISC_PROBE: not fragmented, and whatever the kernel knows of the path
_ECHO: dict[int, int] = {socket.AF_INET: 8, socket.AF_INET6: 128}  # types of an echo request
_IP_HEADER: dict[int, int] = {socket.AF_INET: 20, socket.AF_INET6: 40}
_HEADER = struct.Struct("!BBHHH")  # struct icmphdr: type, code, checksum, identifier, sequence number
_TOKEN = struct.Struct("!16sI?")  # of the process, number of the way, whether it is the long one
_SHORT = 64  # bytes of a packet
_WAITS = (0.3, 0.7, 1.5)  # seconds after each of the attempts
_AT_ONCE = 32  # ways: their answers fit into the socket's receive buffer
_RECEIVED = 65536
_REFUSED = (errno.EACCES, errno.EPERM)


class Way(NamedTuple):
    """A way from an address of this node to one of another node, for packets of pods of up to `mtu` bytes.

    Between addresses at index 0 it leads through the tunnel to `tunnel`; otherwise both are addresses of tunnels.
    """

    local: str
    peer: str
    mtu: int
    tunnel: str = ""

    @property
    def length(self) -> int:
        """Bytes of the longest packet on the way, with its IP header."""
        return self.mtu if self.tunnel else self.mtu + OVERHEAD[6 if ":" in self.peer else 4]


class Passage(Enum):
    """What passes on a way."""

    EVERYTHING = "everything"
    SHORT_PACKETS = "short packets"
    NOTHING = "nothing"


class ProbesNotPermittedError(LinkError):
    """No right to send echo requests."""


def probe(ways: Sequence[Way], *, timeout: float) -> dict[Way, Passage]:
    """Returns what passes on each way, in the calling thread's namespace; without those not probed in `timeout` s.

    Raises ProbesNotPermittedError, or LinkError if this node does not have its tunnel address.
    """
    found: dict[Way, Passage] = {}
    end = time.monotonic() + timeout
    for start in range(0, len(ways), _AT_ONCE):
        if time.monotonic() >= end:
            break
        found |= _probe_at_once(ways[start : start + _AT_ONCE])
    return found


def _probe_at_once(ways: Sequence[Way]) -> dict[Way, Passage]:
    token = os.urandom(16)
    open_: set[tuple[int, bool]] = {(number, is_long) for number in range(len(ways)) for is_long in (False, True)}
    with ExitStack() as stack:
        sockets = {local: stack.enter_context(_open(local)) for local in {way.local for way in ways}}
        for wait in _WAITS:
            for number, is_long in sorted(open_):
                _send(sockets[ways[number].local], ways[number], token, number, is_long=is_long)
            open_ -= set(_answers(list(sockets.values()), token, open_, wait))
            if not open_:
                break
    return {way: _passage({(number, False), (number, True)} & open_) for number, way in enumerate(ways)}


def _passage(unanswered: set[tuple[int, bool]]) -> Passage:
    if not unanswered:
        return Passage.EVERYTHING
    # A short one that is lost while the long one arrives is chance.
    return Passage.NOTHING if len(unanswered) == 2 else Passage.SHORT_PACKETS


def _open(local: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in local else socket.AF_INET
    protocol = socket.IPPROTO_ICMPV6 if family == socket.AF_INET6 else socket.IPPROTO_ICMP
    opened = _permitted(family, protocol)
    try:
        opened.setblocking(False)  # noqa: FBT003 - the standard library's signature
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _PROBE)
            opened.setsockopt(socket.IPPROTO_IPV6, _IPV6_DONTFRAG, 1)
        else:
            opened.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PROBE)
        opened.bind((local, 0))
    except OSError as error:
        opened.close()
        raise LinkError(f"address {local} of this node: cannot send from it: {error.strerror}") from error
    return opened


def _permitted(family: int, protocol: int) -> socket.socket:
    """Opens a socket for echo requests alone, which many systems permit, or one that needs CAP_NET_RAW."""
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            return socket.socket(family, kind | socket.SOCK_CLOEXEC, protocol)
        except OSError as error:
            if error.errno not in _REFUSED:
                raise LinkError(f"open a socket for echo requests: {error.strerror}") from error
    raise ProbesNotPermittedError("needs CAP_NET_RAW, or root's group in net.ipv4.ping_group_range")


def _send(sender: socket.socket, way: Way, token: bytes, number: int, *, is_long: bool) -> None:
    length = (way.length if is_long else _SHORT) - _IP_HEADER[sender.family] - _HEADER.size
    body = _TOKEN.pack(token, number, is_long).ljust(length, b"\0")
    header = _HEADER.pack(_ECHO[sender.family], 0, 0, os.getpid() & 0xFFFF, number & 0xFFFF)
    checksum = _checksum(header + body)  # the kernel sets that of ICMPv6, which covers the addresses, too
    packet = header[:2] + checksum.to_bytes(2, "big") + header[4:] + body
    with suppress(OSError):  # too long for the link, no route, a full queue: no answer comes
        sender.sendto(packet, (way.peer, 0))


def _answers(
    sockets: Sequence[socket.socket], token: bytes, expected: set[tuple[int, bool]], wait: float
) -> Iterator[tuple[int, bool]]:
    """Yields the probes that are answered within `wait` seconds, until all expected ones are."""
    missing = set(expected)
    end = time.monotonic() + wait
    while missing and (remaining := end - time.monotonic()) > 0:
        ready, _, _ = select.select(sockets, [], [], remaining)
        for each in ready:
            with suppress(OSError):  # an error that a router reported; the next attempt decides
                answer = _parsed(each.recv(_RECEIVED), token, each.family)
                if answer in missing:
                    missing.discard(answer)
                    yield answer


def _parsed(packet: bytes, token: bytes, family: int) -> tuple[int, bool]:
    """Returns number and length of the probe that a packet answers; (-1, False) for another one."""
    start = packet.find(token, 0, 128)  # a raw socket of IPv4 delivers the IP header, too
    kind = packet[start - _HEADER.size] if start >= _HEADER.size else _ECHO[family]
    if kind == _ECHO[family] or len(packet) < start + _TOKEN.size:
        return -1, False
    _, number, is_long = _TOKEN.unpack_from(packet, start)
    return number, is_long


def _checksum(data: bytes) -> int:
    """Returns the internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) // 2 * 2]))
    total += data[-1] << 8 if len(data) % 2 else 0
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
