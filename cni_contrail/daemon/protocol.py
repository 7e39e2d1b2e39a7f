"""What shim and daemon say to each other over the Unix socket; one request for each connection.

PRIVATE: the two are released together, and the version in each request is there for the moment of an upgrade.
All numbers are big-endian.

1. Shim: 20 bytes: magic `cnid`, version u16, reserved u16, netns i32 (0: a descriptor of CNI_NETNS comes with the first
   byte, SCM_RIGHTS; above: opening it failed with this errno; -1: there is no CNI_NETNS), length of the environment
   u32, length of the input u32. Then `KEY=VALUE` and a zero byte for each variable `CNI_...`, then standard input.
2. Daemon: the byte 1, as soon as the request was read whole, within 2 s.
3. Daemon, when it is done: exit status u32, length u32, and the output for standard output.
4. Shim: the byte 1, the receipt, when it has written that out. If it ends without, its runtime has no answer. The
   daemon waits 2 s for either.

Steps 2 and 3 keep their form in every version, so a shim of another one is answered with an error that says so.

Security: the directory of the socket lets root in alone, the socket has mode 0600, and the peer is asked for its user.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
from collections.abc import Mapping
from typing import NamedTuple

from cni_contrail.daemon.errors import NoRequestError, ProtocolError
from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, PluginError
from cni_contrail.protocol.netconf import LARGEST_CONFIG

VERSION = 1
LARGEST_ENVIRONMENT = 64 * 1024
LARGEST_OUTPUT = 1024 * 1024

_MAGIC = b"cnid"
_OPENING = struct.Struct("!4sH")
_HEADER = struct.Struct("!4sHHiII")
_ANSWER = struct.Struct("!II")
_CREDENTIALS = struct.Struct("@iII")  # struct ucred: process, user, group
_ACKNOWLEDGEMENT = b"\1"
_RECEIPT = b"\1"
_WITHOUT_WAITING = int(socket.MSG_DONTWAIT)  # numbers, since joining flags of an enumeration takes longer than the call
_DESCRIPTORS_TOO = int(socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC)
_AT_ONCE = 64 * 1024  # bytes; most requests have less than 1 KiB
_RECEIVING = 2.0  # seconds for a whole request
_RECEIPT_PATIENCE = 2.0
_NONE = -1


class ShimRequest(NamedTuple):
    """A request; `failure` is the errno of opening CNI_NETNS, 0 if there is none to tell."""

    environment: Mapping[str, str]
    input: bytes
    failure: int


class ShimConnection:
    """The daemon's side of one connection, and the owner of the descriptor that came over it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unread = b""
        self.descriptor: int | None = None
        self.is_answered = False

    def fileno(self) -> int:
        """Readable as soon as the shim hangs up."""
        return self._connection.fileno()

    @property
    def peer(self) -> int:
        """The user that the shim runs as."""
        size = _CREDENTIALS.size
        _, user, _ = _CREDENTIALS.unpack(self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        return int(user)

    @property
    def has_hung_up(self) -> bool:
        """Whether the shim has gone; before its answer it has nothing to say."""
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def receive(self) -> ShimRequest:
        """Reads the request.

        Raises `ProtocolError` for what is no request, or not whole in time, and `PluginError` with code 107 for one of
        another version.
        """
        deadline = Deadline(_RECEIVING)
        try:
            return self._receive(deadline)
        except OSError as error:
            reason = "not whole in time" if isinstance(error, TimeoutError) else error.strerror
            raise ProtocolError(f"request is {reason}") from error

    def acknowledge(self) -> None:
        """Tells the shim that there is somebody; one that has gone is noticed later."""
        self._send(_ACKNOWLEDGEMENT)

    def answer(self, status: int, output: bytes) -> bool:
        """Sends the answer, and returns whether the shim got rid of it, or is still at it after a while."""
        self.is_answered = True
        return self._send(_ANSWER.pack(status, len(output)) + output) and self._has_receipt()

    def refuse(self, output: bytes) -> None:
        """Answers a request that was not read whole; the rest is read past, since closing would cut the answer off."""
        self.acknowledge()
        self._send(_ANSWER.pack(1, len(output)) + output)
        deadline = Deadline(_RECEIPT_PATIENCE)
        with contextlib.suppress(OSError):
            while True:
                deadline.await_readable(self.fileno())
                if not self._connection.recv(LARGEST_ENVIRONMENT):
                    return

    def close(self) -> None:
        """Closes the connection and the descriptor."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
        self._connection.close()

    def _receive(self, deadline: Deadline) -> ShimRequest:
        opening = self._read_opening(deadline)
        _, _, _, netns, environment, data = _HEADER.unpack(opening + self._read(_HEADER.size - len(opening), deadline))
        if environment > LARGEST_ENVIRONMENT or data > LARGEST_CONFIG:
            raise PluginError(Code.DAEMON_PROTOCOL, f"a request of {environment} and {data} bytes is too large")
        if netns < _NONE or (netns == 0) != (self.descriptor is not None):
            raise PluginError(Code.DAEMON_PROTOCOL, f"netns is {netns}, and a descriptor came, or the other way round")
        received = ShimRequest(
            _environment(self._read(environment, deadline)), self._read(data, deadline), max(netns, 0)
        )
        if self._unread:
            raise ProtocolError(f"request is followed by {len(self._unread)} bytes")
        return received

    def _read_opening(self, deadline: Deadline) -> bytes:
        """The part of the header that says which version it is of; the descriptor comes with its first byte."""
        self._unread, descriptors, _, _ = deadline.when_readable(self.fileno(), self._receive_with_descriptor)
        if not self._unread:
            raise NoRequestError("closed before a request")
        if descriptors:
            self.descriptor = descriptors[0]
        opening = self._read(_OPENING.size, deadline)
        magic, version = _OPENING.unpack(opening)
        if magic != _MAGIC:
            raise ProtocolError(f"what begins with {magic!r} is no request")
        if version != VERSION:
            message = f"the shim speaks version {version} of the protocol, the daemon version {VERSION}"
            raise PluginError(Code.DAEMON_PROTOCOL, message)
        return opening

    def _receive_with_descriptor(self) -> tuple[bytes, list[int], int, object]:
        return socket.recv_fds(self._connection, _AT_ONCE, 1, _DESCRIPTORS_TOO)

    def _receive_what_is_there(self) -> bytes:
        return self._connection.recv(_AT_ONCE, _WITHOUT_WAITING)

    def _read(self, length: int, deadline: Deadline) -> bytes:
        while len(self._unread) < length:
            part = deadline.when_readable(self.fileno(), self._receive_what_is_there)
            if not part:
                raise ProtocolError(f"request ends after {len(self._unread)} of {length} bytes")
            self._unread += part
        read, self._unread = self._unread[:length], self._unread[length:]
        return read

    def _send(self, data: bytes) -> bool:
        try:
            sent = self._send_at_once(data)
            if sent < len(data):
                self._connection.settimeout(_RECEIPT_PATIENCE)
                self._connection.sendall(data[sent:])
        except OSError:
            return False
        return True

    def _send_at_once(self, data: bytes) -> int:
        try:
            return self._connection.send(data, _WITHOUT_WAITING)
        except BlockingIOError:
            return 0

    def _has_receipt(self) -> bool:
        try:
            Deadline(_RECEIPT_PATIENCE).await_readable(self.fileno())
            return self._connection.recv(1) == _RECEIPT
        except TimeoutError:
            return True  # its runtime is slow to read: should it fail in the end, a DEL comes
        except OSError:
            return False


def _environment(data: bytes) -> Mapping[str, str]:
    environment: dict[str, str] = {}
    for each in filter(None, os.fsdecode(data).split("\0")):
        name, _, value = each.partition("=")
        environment.setdefault(name, value)  # the first of two, as in `os.environ`
    return environment
