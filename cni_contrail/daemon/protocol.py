"""Protocol between shim and daemon over the Unix socket: one request per connection.

PRIVATE: both are released together; the version in each request is for the moment of an upgrade. All numbers are
big-endian.

1. Shim: 20 bytes: magic `cnid`, version u16, reserved u16, netns i32 (0: a descriptor of CNI_NETNS comes with the first
   byte, SCM_RIGHTS; above: opening it failed with this errno; -1: no CNI_NETNS), length of the environment u32, length
   of the input u32. Then `KEY=VALUE` and a zero byte for each `CNI_...` variable, then standard input.
2. Daemon: the byte 1, the acknowledgement, as soon as it has read the whole request, within 2 s.
3. Daemon: the response: exit status u32, length u32, and the bytes for standard output.
4. Shim: the byte 1, the receipt, when it has written them. If it ends without, its runtime has no response. The daemon
   waits 2 s for the receipt.

Steps 2 and 3 keep their form in every version, so a shim of another version gets an error that says so.

Security: only root may enter the socket's directory, the socket has mode 0600, and the daemon checks the peer's user.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
from array import array
from collections.abc import Mapping, Sequence
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
_RESPONSE = struct.Struct("!II")
_CREDENTIALS = struct.Struct("@iII")  # struct ucred: process, user, group
_ACKNOWLEDGEMENT = b"\1"
_RECEIPT = b"\1"
_NO_WAIT = int(socket.MSG_DONTWAIT)  # integers: combining members of an enumeration takes longer than the system call
_NO_WAIT_CLOEXEC = int(socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC)
_ONE_DESCRIPTOR = socket.CMSG_LEN(struct.calcsize("i"))
_READ_SIZE = 64 * 1024  # bytes; most requests have less than 1 KiB
_REQUEST_TIMEOUT = 2.0  # seconds for a whole request
_RECEIPT_TIMEOUT = 2.0
_NO_NETNS = -1


class ShimRequest(NamedTuple):
    """A request; `netns_errno` is why CNI_NETNS could not be opened, 0 otherwise."""

    environment: Mapping[str, str]
    input: bytes
    netns_errno: int


class ShimConnection:
    """The daemon's side of one connection; owns the descriptor that came with the request."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unread = b""
        self.descriptor: int | None = None
        self.has_responded = False

    def fileno(self) -> int:
        """Descriptor that becomes readable when the shim hangs up."""
        return self._connection.fileno()

    @property
    def peer_user(self) -> int:
        """User ID that the shim runs as."""
        size = _CREDENTIALS.size
        _, user, _ = _CREDENTIALS.unpack(self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        return int(user)

    @property
    def has_hung_up(self) -> bool:
        """Whether the shim has closed the connection; before the response it sends nothing else."""
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def receive(self) -> ShimRequest:
        """Reads the request.

        Raises `ProtocolError` for bytes that are no request, or no whole one after 2 s, and `PluginError` with code 107
        for another version of the protocol.
        """
        deadline = Deadline(_REQUEST_TIMEOUT)
        try:
            return self._receive(deadline)
        except OSError as error:
            timed_out = isinstance(error, TimeoutError)
            reason = f"timed out after {_REQUEST_TIMEOUT:g} s" if timed_out else error.strerror
            raise ProtocolError(f"request: {reason}") from error

    def acknowledge(self) -> None:
        """Sends the acknowledgement; a shim that is gone is noticed later."""
        self._send(_ACKNOWLEDGEMENT)

    def respond(self, status: int, output: bytes) -> bool:
        """Sends the response; returns False if the connection failed before the receipt.

        No receipt within 2 s counts as success: the runtime is slow to read, and will call DEL if that fails.
        """
        self.has_responded = True
        return self._send(_RESPONSE.pack(status, len(output)) + output) and self._has_receipt()

    def reject(self, output: bytes) -> None:
        """Responds to a request that was not read whole.

        The rest is read and discarded: closing a socket with unread data resets it, and the response would be lost.
        """
        self.acknowledge()
        self._send(_RESPONSE.pack(1, len(output)) + output)
        deadline = Deadline(_RECEIPT_TIMEOUT)
        with contextlib.suppress(OSError):
            # Until the shim closes the connection, or the time is over.
            while True:
                deadline.wait_readable(self.fileno())
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
            raise PluginError(Code.DAEMON_PROTOCOL, f"request: too large: {environment} + {data} bytes")
        if netns < _NO_NETNS or (netns == 0) != (self.descriptor is not None):
            descriptor = "no descriptor" if self.descriptor is None else "a descriptor"
            raise PluginError(Code.DAEMON_PROTOCOL, f"request: netns is {netns} and came with {descriptor}")
        received = ShimRequest(
            _environment(self._read(environment, deadline)), self._read(data, deadline), max(netns, 0)
        )
        if self._unread:
            raise ProtocolError(f"request: {len(self._unread)} unexpected bytes after its end")
        return received

    def _read_opening(self, deadline: Deadline) -> bytes:
        """Reads magic and version, and the descriptor that comes with the first byte."""
        self._unread, descriptors = deadline.read_when_readable(self.fileno(), self._receive_with_descriptor)
        if not self._unread:
            raise NoRequestError("connection closed before a request")
        # Further ones do not fit into the control buffer: the kernel closes them.
        if descriptors:
            self.descriptor = descriptors[0]
        opening = self._read(_OPENING.size, deadline)
        magic, version = _OPENING.unpack(opening)
        if magic != _MAGIC:
            raise ProtocolError(f"request: starts with {magic!r} instead of {_MAGIC!r}")
        if version != VERSION:
            message = f"protocol mismatch: the shim has version {version}, the daemon version {VERSION}"
            raise PluginError(Code.DAEMON_PROTOCOL, message)
        return opening

    def _receive_with_descriptor(self) -> tuple[bytes, Sequence[int]]:
        # Not `socket.recv_fds`: it ignores its flags, so a silent connection would block this thread forever.
        data, ancillary, _, _ = self._connection.recvmsg(_READ_SIZE, _ONE_DESCRIPTOR, _NO_WAIT_CLOEXEC)
        return data, [each for _, _, content in ancillary for each in array("i", content)]

    def _receive_available(self) -> bytes:
        return self._connection.recv(_READ_SIZE, _NO_WAIT)

    def _read(self, length: int, deadline: Deadline) -> bytes:
        while len(self._unread) < length:
            part = deadline.read_when_readable(self.fileno(), self._receive_available)
            if not part:
                raise ProtocolError(f"request: truncated after {len(self._unread)} of {length} bytes")
            self._unread += part
        read, self._unread = self._unread[:length], self._unread[length:]
        return read

    def _send(self, data: bytes) -> bool:
        try:
            sent = self._send_available(data)
            if sent < len(data):
                self._connection.settimeout(_RECEIPT_TIMEOUT)
                self._connection.sendall(data[sent:])
        except OSError:
            return False
        return True

    def _send_available(self, data: bytes) -> int:
        try:
            return self._connection.send(data, _NO_WAIT)
        except BlockingIOError:
            return 0

    def _has_receipt(self) -> bool:
        try:
            Deadline(_RECEIPT_TIMEOUT).wait_readable(self.fileno())
            return self._connection.recv(1) == _RECEIPT
        except TimeoutError:
            return True  # the runtime is slow to read; if that fails in the end, it calls DEL
        except OSError:
            return False


def _environment(data: bytes) -> Mapping[str, str]:
    environment: dict[str, str] = {}
    for each in filter(None, os.fsdecode(data).split("\0")):
        name, _, value = each.partition("=")
        environment.setdefault(name, value)  # the first of two counts, as in `os.environ`
    return environment
