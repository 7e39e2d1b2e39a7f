"""Netlink messages as bytes: a header, a fixed part that depends on the kind, and attributes.

Sources: netlink(7), rtnetlink(7), linux/netlink.h. Numbers are in the machine's byte order, addresses in the network's;
every attribute is padded to 4 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from cni_contrail.link.named_tuple import NamedTuple

EXCLUSIVE = 0x200  # NLM_F_EXCL: an error if it exists already
CREATE = 0x400  # NLM_F_CREATE
APPEND = 0x800  # NLM_F_APPEND: behind what is there
DUMP = 0x300  # NLM_F_DUMP: all of them
DUMP_INTERRUPTED = 0x10  # NLM_F_DUMP_INTR: changed meanwhile, so not to be trusted

ERROR = 2  # NLMSG_ERROR: a refusal, or with code 0 an acknowledgement
DONE = 3  # NLMSG_DONE: end of a dump

_REQUEST = 0x01
_ACKNOWLEDGE = 0x04
_NESTED = 0x8000

_HEADER = struct.Struct("=IHHII")  # length, kind, flags, sequence number, port
_ATTRIBUTE = struct.Struct("=HH")  # length, kind
_U32 = struct.Struct("=I")
_NUMBER = struct.Struct("=HHI")  # an attribute that is one


class Request(NamedTuple):
    """One message to the kernel before it is numbered; `what` says in errors what it was for."""

    kind: int
    flags: int
    body: bytes
    what: str


class Message(NamedTuple):
    """One message from the kernel."""

    kind: int
    flags: int
    sequence: int
    body: bytes


def padded(length: int) -> int:
    """Returns the length with padding."""
    return (length + 3) & ~3


def attribute(kind: int, value: bytes) -> bytes:
    """Returns one attribute, padded."""
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(-length & 3)


def number(kind: int, value: int) -> bytes:
    """Returns an attribute that holds an unsigned 32-bit number; ValueError if it does not fit."""
    if not 0 <= value < 1 << 32:
        raise ValueError(f"{value} is no unsigned 32-bit number")
    return _NUMBER.pack(_NUMBER.size, kind, value)


def nested(kind: int, *attributes: bytes) -> bytes:
    """Returns an attribute that holds attributes."""
    return attribute(kind | _NESTED, b"".join(attributes))


def attributes(data: bytes) -> dict[int, bytes]:
    """Reads a sequence of attributes: kind to value."""
    found = {}
    position = 0
    while position + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, position)
        found[kind & ~_NESTED] = data[position + _ATTRIBUTE.size : position + length]
        position += padded(max(length, _ATTRIBUTE.size))
    return found


def unpack_number(value: bytes) -> int:
    """Reads the value of an attribute that holds an unsigned 32-bit number."""
    return int(_U32.unpack(value)[0])


def datagram(requests: Sequence[Request], first: int) -> bytes:
    """Returns the requests as one datagram, numbered from `first`, of which the last asks for an acknowledgement.

    The kernel works a datagram off in order, all of it even if a message is refused, and reports refusals whether or
    not an acknowledgement was asked for. So when the last one is acknowledged, what was not refused has been done.
    """
    parts = []
    last = len(requests) - 1
    for position, request in enumerate(requests):
        flags = request.flags | _REQUEST | (_ACKNOWLEDGE if position == last else 0)
        parts.append(_HEADER.pack(_HEADER.size + len(request.body), request.kind, flags, first + position, 0))
        parts.append(request.body)
    return b"".join(parts)


def messages(data: bytes) -> Iterator[Message]:
    """Reads the messages of one datagram."""
    position = 0
    while position + _HEADER.size <= len(data):
        length, kind, flags, sequence, _port = _HEADER.unpack_from(data, position)
        yield Message(kind, flags, sequence, data[position + _HEADER.size : position + length])
        position += padded(max(length, _HEADER.size))
