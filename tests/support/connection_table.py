"""The kernel's table of connections in one network namespace, which a test fills.

Its limit (`net.netfilter.nf_conntrack_max`) is one for all namespaces, but each counts its own connections. So a test
fills it with connections instead of lowering the limit of the whole machine.

Sources: linux/netfilter/nfnetlink_conntrack.h, linux/netfilter/nf_conntrack_common.h.
"""

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from cni_contrail.link.message import attribute, messages, nested
from tests.support.netns import inside

_NETFILTER = 12  # NETLINK_NETFILTER
_NEW = 1 << 8  # NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_NEW
_FLAGS = 0x1 | 0x400  # NLM_F_REQUEST, NLM_F_CREATE
_ACKNOWLEDGE = 0x4
_SO_RCVBUFFORCE = 33
_ERROR = 2
_ESTABLISHED = 3  # TCP_CONNTRACK_ESTABLISHED
_STATUS = 2 | 4 | 8  # IPS_SEEN_REPLY, IPS_ASSURED, IPS_CONFIRMED: no room is made of such a connection
_SECONDS = 3600
_AT_ONCE = 500  # messages in a datagram
_ROOM = 256  # connections more than the limit, since some may end meanwhile


def limit() -> int:
    """Returns how many connections a namespace may have."""
    return int(Path("/proc/sys/net/netfilter/nf_conntrack_max").read_text())


def number(namespace: str) -> int:
    """Returns how many connections the namespace at a path has."""
    with inside(namespace):
        return int(Path("/proc/sys/net/netfilter/nf_conntrack_count").read_text())


def fill(namespace: str) -> None:
    """Adds answered TCP connections of nobody until the table of the namespace at a path is full."""
    with inside(namespace), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETFILTER) as kernel:
        kernel.bind((0, 0))
        kernel.settimeout(20)
        kernel.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 22)  # for a refusal of each message of a datagram
        for batch in _batches(limit() + _ROOM):
            kernel.send(batch)
            if _is_refused(kernel.recv(1 << 16)):
                return
    raise AssertionError("the table of connections is not full")


def _batches(count: int) -> Iterator[bytes]:
    """Yields datagrams, each with an acknowledgement of its last message; refused ones are answered in any case."""
    for first in range(0, count, _AT_ONCE):
        yield b"".join(
            _request(each, acknowledged=each == first + _AT_ONCE - 1) for each in range(first, first + _AT_ONCE)
        )


def _request(connection: int, *, acknowledged: bool) -> bytes:
    source, destination = struct.pack("!I", 0x0B000000 + connection), socket.inet_aton("10.255.0.1")
    body = struct.pack("!BBH", socket.AF_INET, 0, 0)
    body += _tuple(1, source, destination, 1024, 80) + _tuple(2, destination, source, 80, 1024)
    body += attribute(3, struct.pack("!I", _STATUS)) + attribute(7, struct.pack("!I", _SECONDS))
    body += nested(4, nested(1, attribute(1, bytes((_ESTABLISHED,)))))
    flags = _FLAGS | (_ACKNOWLEDGE if acknowledged else 0)
    return struct.pack("=IHHII", 16 + len(body), _NEW, flags, connection, 0) + body


def _tuple(kind: int, source: bytes, destination: bytes, source_port: int, destination_port: int) -> bytes:
    ports = attribute(2, struct.pack("!H", source_port)) + attribute(3, struct.pack("!H", destination_port))
    addresses = nested(1, attribute(1, source), attribute(2, destination))
    return nested(kind, addresses, nested(2, attribute(1, bytes((socket.IPPROTO_TCP,))), ports))


def _is_refused(datagram: bytes) -> bool:
    codes = [struct.unpack_from("=i", each.body)[0] for each in messages(datagram) if each.kind == _ERROR]
    return any(codes)
