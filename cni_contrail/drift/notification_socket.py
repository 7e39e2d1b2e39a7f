"""Netlink socket that receives notifications of its network namespace, or also of all that this one has an ID for.

One socket for all networks of a node (NETLINK_LISTEN_ALL_NSID): a socket in each of 500 namespaces would keep a
namespace that was deleted, and cost each notification of the kernel about as much.

Not promised: every notification. If the receive buffer overflows, the kernel drops some, and the reader is told so.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Sequence

from cni_contrail.drift.socket_filter import Accepted, attach_filter
from cni_contrail.link import message
from cni_contrail.link.exchange import kernel_error
from cni_contrail.link.message import Message
from cni_contrail.link.named_tuple import NamedTuple

_SOL_NETLINK = 270
_ADD_MEMBERSHIP, _LISTEN_ALL_NSID = 1, 8  # NETLINK_...
_SO_RCVBUFFORCE = 33
_LONGEST = 65536
_AT_ONCE = 20_000  # messages read in one call, so that a flood cannot keep the reader forever
_NSID = struct.Struct("=i")
_ANCILLARY = socket.CMSG_SPACE(_NSID.size)


class Notification(NamedTuple):
    """A message, and the ID of its namespace, None for the socket's own."""

    netns_id: int | None
    message: Message


class Received(NamedTuple):
    """Notifications in their order, and whether the kernel dropped others."""

    notifications: list[Notification]
    is_incomplete: bool


class NotificationSocket:
    """A socket in the network namespace that the calling thread is in; close it. Raises KernelError.

    `all_namespaces` needs CAP_NET_BROADCAST. `receive_bytes` is the size of its buffer.
    """

    def __init__(
        self,
        protocol: int,
        groups: Sequence[int],
        accepted: Sequence[Accepted],
        *,
        all_namespaces: bool,
        receive_bytes: int,
    ) -> None:
        try:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        except OSError as error:
            raise kernel_error("open a netlink socket", error) from error
        try:
            self._socket.bind((0, 0))  # first: it ends memberships, and an unbound socket receives nothing
            attach_filter(self._socket, accepted)
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, receive_bytes)
            if all_namespaces:
                self._socket.setsockopt(_SOL_NETLINK, _LISTEN_ALL_NSID, 1)
            for group in groups:
                self._socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, group)
        except OSError as error:
            self._socket.close()
            raise kernel_error("receive notifications of the kernel", error) from error
        self._socket.settimeout(0)

    def fileno(self) -> int:
        """Returns the descriptor, which is readable when there are notifications."""
        return self._socket.fileno()

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def read(self) -> Received:
        """Returns what has been received, without waiting; raises KernelError."""
        found: list[Notification] = []
        is_incomplete = False
        while len(found) < _AT_ONCE:
            try:
                data, ancillary, _, _ = self._socket.recvmsg(_LONGEST, _ANCILLARY)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise kernel_error("read notifications", error) from error
                is_incomplete = True
                continue
            netns_id = _netns_id(ancillary)
            found += [Notification(netns_id, each) for each in message.messages(data)]
        return Received(found, is_incomplete=is_incomplete)


def _netns_id(ancillary: list[tuple[int, int, bytes]]) -> int | None:
    for level, kind, data in ancillary:
        if (level, kind) == (_SOL_NETLINK, _LISTEN_ALL_NSID):
            return int(_NSID.unpack(data)[0])
    return None
