"""The daemon's side of a connection to a shim; `protocol` describes what is sent."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
from array import array

from cni_contrail.daemon.errors import NoRequestError, ProtocolError
from cni_contrail.daemon.protocol import (
    ACKNOWLEDGEMENT,
    LARGEST_ENVIRONMENT,
    PIN_REPLY,
    RECEIPT,
    ShimRequest,
    encode_pin,
    encode_response,
    parse_request,
)
from cni_contrail.deadline import Deadline
from cni_contrail.errors import TryAgainError
from cni_contrail.link.errors import NetnsError, NotReadyError

_CREDENTIALS = struct.Struct("@iII")  # struct ucred: process, user, group
_NO_WAIT = int(socket.MSG_DONTWAIT)  # integers: combining members of an enumeration takes longer than the system call
_NO_WAIT_CLOEXEC = int(socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC)
_ONE_DESCRIPTOR = socket.CMSG_LEN(struct.calcsize("i"))
_READ_SIZE = 64 * 1024  # bytes; most requests have less than 1 KiB
_RECEIPT_TIMEOUT = 2.0  # seconds
_PIN_TIMEOUT = 5.0  # the shim waits 3 s for the lock of the directory


class ShimConnection:
    """Reads the request without waiting, and responds. Owns the descriptor that came with the request."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = bytearray()
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

    def receive(self) -> ShimRequest | None:
        """Reads once, without waiting; returns the request when it is whole, otherwise None.

        Raises `ProtocolError` if it never will be, and `PluginError` as `parse_request` does.
        """
        try:
            part = self._receive_available()
        except BlockingIOError:
            return None
        except OSError as error:
            raise ProtocolError(f"request: {error.strerror}") from error
        if not part and not self._received:
            raise NoRequestError("connection closed before a request")
        if not part:
            raise ProtocolError(f"request: truncated after {len(self._received)} bytes")
        self._received += part
        return parse_request(self._received, has_descriptor=self.descriptor is not None)

    def acknowledge(self) -> None:
        """Sends the acknowledgement without waiting; a shim that is gone is noticed later."""
        with contextlib.suppress(OSError):
            self._send_available(ACKNOWLEDGEMENT)

    def pin(self, name: str, netns: int) -> None:
        """Has the shim bind a network's namespace on the host, unless one is bound there already.

        Raises NetnsError, NotReadyError if the directory is locked, or `TryAgainError` if the shim is gone.
        """
        try:
            socket.send_fds(self._connection, [encode_pin(name)], [netns])
            Deadline(_PIN_TIMEOUT).wait_readable(self.fileno())
            reply = self._connection.recv(PIN_REPLY.size, _NO_WAIT)
        except TimeoutError as error:
            raise NotReadyError(f"network namespace {name}: not bound by the shim within {_PIN_TIMEOUT:g} s") from error
        except OSError as error:
            raise TryAgainError(f"the runtime closed the connection: {error.strerror}") from error
        if len(reply) < PIN_REPLY.size:
            raise TryAgainError("the runtime closed the connection")
        (number,) = PIN_REPLY.unpack(reply)
        if number == errno.EWOULDBLOCK:
            raise NotReadyError(f"network namespace {name}: its directory is locked by another process")
        if number:
            raise NetnsError(f"network namespace {name}: cannot be bound by the shim: {os.strerror(number)}")

    def respond(self, status: int, output: bytes) -> bool:
        """Sends the response; returns False if the connection failed before the receipt.

        No receipt within 2 s counts as success: the runtime is slow to read, and will call DEL if that fails.
        """
        self.has_responded = True
        return self._send(encode_response(status, output)) and self._has_receipt()

    def reject(self, output: bytes) -> None:
        """Responds to a request that was acknowledged without being read whole.

        The rest is read and discarded: closing a socket with unread data resets it, and the response would be lost.
        """
        self._send(encode_response(1, output))
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

    def _receive_available(self) -> bytes:
        if self._received:
            return self._connection.recv(_READ_SIZE, _NO_WAIT)
        # The descriptor comes with the first byte. Further ones do not fit into the control buffer: the kernel closes
        # them. Not `socket.recv_fds`: it ignores its flags.
        data, ancillary, _, _ = self._connection.recvmsg(_READ_SIZE, _ONE_DESCRIPTOR, _NO_WAIT_CLOEXEC)
        for _, _, content in ancillary:
            self.descriptor = array("i", content)[0]
        return data

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
            return self._connection.recv(1) == RECEIPT
        except TimeoutError:
            return True  # the runtime is slow to read; if that fails in the end, it calls DEL
        except OSError:
            return False
