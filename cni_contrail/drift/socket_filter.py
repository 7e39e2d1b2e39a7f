"""Filter of notifications in the kernel, a classic BPF program: other programs may cause thousands a second.

Each notification is one message at the beginning of its socket buffer, so the offsets are those of netlink(7).

Sources: linux/filter.h, linux/netlink.h, linux/rtnetlink.h, linux/neighbour.h.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Sequence

from cni_contrail.link.named_tuple import NamedTuple

_SO_ATTACH_FILTER = 26
_LOAD_HALF, _LOAD_BYTE = 0x28, 0x30  # BPF_LD | BPF_ABS with BPF_H or BPF_B
_JUMP_IF_EQUAL, _JUMP_IF_SET = 0x15, 0x45  # BPF_JMP | BPF_K with BPF_JEQ or BPF_JSET
_RETURN = 0x06
_NOTHING, _WHOLE = 0, 0xFFFFFFFF
_INSTRUCTION = struct.Struct("=HBBI")  # struct sock_filter: code, jumps if true and if false, operand
_KIND_OFFSET = 4  # of the type in struct nlmsghdr


class Condition(NamedTuple):
    """A value of the message: `load` it from an offset; accepted if `jump` holds for one of the operands."""

    load: int
    offset: int
    jump: int
    operands: tuple[int, ...]


def byte_is(offset: int, *values: int) -> Condition:
    """The byte has one of the values."""
    return Condition(_LOAD_BYTE, offset, _JUMP_IF_EQUAL, values)


def half_is(offset: int, *values: int) -> Condition:
    """The 16-bit number of this machine has one of the values."""
    return Condition(_LOAD_HALF, offset, _JUMP_IF_EQUAL, tuple(_as_loaded(value) for value in values))


def half_has(offset: int, bits: int) -> Condition:
    """The 16-bit number of this machine has one of the bits."""
    return Condition(_LOAD_HALF, offset, _JUMP_IF_SET, (_as_loaded(bits),))


class Accepted(NamedTuple):
    """Messages of this type pass if all conditions hold."""

    kind: int
    conditions: tuple[Condition, ...] = ()


def attach_filter(receiver: socket.socket, accepted: Sequence[Accepted]) -> None:
    """Lets only these messages pass; raises OSError."""
    code = program(accepted)
    buffer = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: number of instructions, and their address
    header = struct.pack("@HP", len(code) // _INSTRUCTION.size, ctypes.addressof(buffer))
    receiver.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, header)


def program(accepted: Sequence[Accepted]) -> bytes:
    """Returns the program, encoded."""
    return b"".join(map(_block, accepted)) + _INSTRUCTION.pack(_RETURN, 0, 0, _NOTHING)


def _block(accepted: Accepted) -> bytes:
    """Returns the instructions for one type of message, which are skipped for others."""
    tests = b"".join(map(_test, accepted.conditions)) + _INSTRUCTION.pack(_RETURN, 0, 0, _WHOLE)
    skipped = len(tests) // _INSTRUCTION.size
    load = _INSTRUCTION.pack(_LOAD_HALF, 0, 0, _KIND_OFFSET)
    return load + _INSTRUCTION.pack(_JUMP_IF_EQUAL, 0, skipped, _as_loaded(accepted.kind)) + tests


def _test(condition: Condition) -> bytes:
    """Returns the instructions that end the program if the condition does not hold."""
    number = len(condition.operands)
    code = _INSTRUCTION.pack(condition.load, 0, 0, condition.offset)
    for position, operand in enumerate(condition.operands):
        # If it holds: behind the other operands, and behind the end of the program.
        code += _INSTRUCTION.pack(condition.jump, number - position, 0, operand)
    return code + _INSTRUCTION.pack(_RETURN, 0, 0, _NOTHING)


def _as_loaded(value: int) -> int:
    """Returns how a 16-bit number of this machine is loaded: in network byte order."""
    return int.from_bytes(struct.pack("=H", value), "big")
