"""Netlink message encoding: a header, a fixed part that depends on the message type, and attributes.

Sources: netlink(7), rtnetlink(7), linux/netlink.h. Numbers are in host byte order, addresses in network byte order;
every attribute is padded to 4 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Sequence

from cni_contrail.link.named_tuple import NamedTuple

EXCLUSIVE = 0x200  # NLM_F_EXCL: EEXIST if it already exists
CREATE = 0x400  # NLM_F_CREATE
APPEND = 0x800  # NLM_F_APPEND: behind existing ones
DUMP = 0x300  # NLM_F_DUMP (NLM_F_ROOT | NLM_F_MATCH): all objects
DUMP_INTERRUPTED = 0x10  # NLM_F_DUMP_INTR: objects changed meanwhile, so the dump may be inconsistent

ERROR = 2  # NLMSG_ERROR: an error, or with code 0 an acknowledgement
DONE = 3  # NLMSG_DONE: end of a dump

_REQUEST = 0x01
ACKNOWLEDGE = 0x04  # NLM_F_ACK
_NESTED = 0x8000  # NLA_F_NESTED: in the type of an attribute that holds attributes

_HEADER = struct.Struct("=IHHII")  # length, kind, flags, sequence number, port
_ATTRIBUTE = struct.Struct("=HH")  # length, kind
_U32 = struct.Struct("=I")
_NUMBER = struct.Struct("=HHI")  # a whole attribute with a 32-bit value: packed at once, as there are many


class NetlinkRequest(NamedTuple):
    """One message to the kernel, not yet numbered; `what` names it in error messages."""

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
    """Returns the length rounded up to 4 bytes."""
    return (length + 3) & ~3


def attribute(kind: int, value: bytes) -> bytes:
    """Returns one attribute, padded."""
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(-length & 3)


def number(kind: int, value: int) -> bytes:
    """Returns an attribute with an unsigned 32-bit value; raises ValueError if it does not fit."""
    if not 0 <= value < 1 << 32:
        raise ValueError(f"{value} is not an unsigned 32-bit number")
    return _NUMBER.pack(_NUMBER.size, kind, value)


def nested(kind: int, *attributes: bytes) -> bytes:
    """Returns an attribute that contains attributes."""
    return attribute(kind | _NESTED, b"".join(attributes))


def attributes(data: bytes) -> dict[int, bytes]:
    """Parses a sequence of attributes: type to value."""
    found = {}
    position, last = 0, len(data) - _ATTRIBUTE.size
    unpack = _ATTRIBUTE.unpack_from  # a dump has tens of thousands of them
    while position <= last:
        length, kind = unpack(data, position)
        found[kind & ~_NESTED] = data[position + 4 : position + length]
        position += (length + 3) & ~3 if length > 4 else 4  # a malformed length must not stop the loop from advancing
    return found


def first_attributes(data: bytes, position: int, wanted: Container[int], number: int) -> dict[int, bytes]:
    """Parses attributes from a position on, until a `number` of the wanted types is found; others are left out."""
    found: dict[int, bytes] = {}
    last = len(data) - _ATTRIBUTE.size
    unpack = _ATTRIBUTE.unpack_from
    while position <= last and len(found) < number:
        length, kind = unpack(data, position)
        if kind in wanted:
            found[kind] = data[position + 4 : position + length]
        position += (length + 3) & ~3 if length > 4 else 4
    return found


def unpack_number(value: bytes) -> int:
    """Parses the value of an attribute with an unsigned 32-bit value."""
    return int(_U32.unpack(value)[0])


def datagram(requests: Sequence[NetlinkRequest], first: int) -> bytes:
    """Returns the requests as one datagram, numbered from `first`; only the last requests an acknowledgement.

    The kernel processes all messages of a datagram in order, even if one fails, and reports errors whether or not an
    acknowledgement was requested. When the last one is answered, every request without an error has been executed.
    """
    parts = []
    last = first + len(requests) - 1
    for sequence, (kind, flags, body, _) in enumerate(requests, first):
        general = _REQUEST if sequence < last else _REQUEST | ACKNOWLEDGE
        parts.append(_HEADER.pack(_HEADER.size + len(body), kind, flags | general, sequence, 0) + body)
    return b"".join(parts)


def messages(data: bytes) -> list[Message]:
    """Parses the messages of one datagram."""
    parsed = []
    position, last = 0, len(data) - _HEADER.size
    while position <= last:
        length, kind, flags, sequence, _ = _HEADER.unpack_from(data, position)
        parsed.append(Message(kind, flags, sequence, data[position + _HEADER.size : position + length]))
        position += (max(length, _HEADER.size) + 3) & ~3
    return parsed
