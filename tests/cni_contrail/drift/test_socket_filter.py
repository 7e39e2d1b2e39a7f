"""The filter of notifications, on a socket pair: the kernel executes the program as it does for netlink."""

import socket
import struct
from collections.abc import Sequence

import pytest

from cni_contrail.drift.kernel_change import FILTER_MESSAGES, LINK_MESSAGES, NODE_MESSAGES
from cni_contrail.drift.socket_filter import Accepted, attach_filter

_HEADER = struct.Struct("=IHHII")
PERMANENT, STALE, LEARNED_MAC = 0x80, 0x04, 0x02
REPLACED = 0x100


def message(kind: int, body: bytes = b"", flags: int = 0) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 0, 0) + body


def neighbour(state: int) -> bytes:
    return struct.pack("=BxxxiHBB", 2, 2, state, 0, 0)


def route(*, length: int, protocol: int) -> bytes:
    return struct.pack("=BBBBBBBBI", 2, length, 0, 0, 254, protocol, 0, 1, 0)


@pytest.mark.parametrize(
    ("sent", "passes"),
    [
        (message(16), True),
        (message(17), True),
        (message(20), False),
        (message(21), True),
        (message(28, neighbour(PERMANENT)), True),
        (message(28, neighbour(0x40)), True),
        (message(28, neighbour(STALE)), False),
        (message(28, neighbour(LEARNED_MAC)), False),
        (message(29, neighbour(STALE)), True),
        (message(24, route(length=32, protocol=67)), False),
        (message(24, route(length=32, protocol=3), REPLACED), True),
        (message(24, route(length=128, protocol=3), REPLACED), True),
        (message(24, route(length=24, protocol=3), REPLACED), False),
        (message(25, route(length=0, protocol=67)), True),
        (message(25, route(length=32, protocol=3)), False),
        (message(88), False),
        (message(89), True),
        (b"", False),
    ],
)
def test_only_deletions_and_replacements_of_what_may_be_ours_pass(sent: bytes, passes: bool) -> None:
    assert passed(sent, (*LINK_MESSAGES, *NODE_MESSAGES)) == passes


@pytest.mark.parametrize(("kind", "passes"), [(0xA0F, True), (0xA00, False), (0xA06, False), (0x10F, False)])
def test_of_a_transaction_of_rules_only_its_end_passes(kind: int, passes: bool) -> None:
    assert passed(message(kind), FILTER_MESSAGES) == passes


def passed(sent: bytes, accepted: Sequence[Accepted]) -> bool:
    """Whether the filter lets the message pass; a second socket pair shows that it was sent."""
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with left, right:
        attach_filter(right, accepted)
        right.setblocking(False)
        try:
            left.send(sent)
            return right.recv(4096) == sent
        except BlockingIOError:
            return False
        except PermissionError:  # the filter has dropped it
            return False
