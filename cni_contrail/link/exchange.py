"""Netlink sockets: send requests in one datagram and return answers and errors.

The kernel processes a datagram within the system call that sends it, so the answers are ready when `send` returns, and
one acknowledgement is enough for a whole datagram (see `message.datagram`). Errors carry the kernel's own explanation
(NETLINK_EXT_ACK). The receive timeout bounds the wait if an answer is lost.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

from cni_contrail.link import message
from cni_contrail.link.errors import KernelError
from cni_contrail.link.message import Message, NetlinkRequest
from cni_contrail.link.netns import InNetns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_NETLINK_ROUTE = 0
_SOL_NETLINK = 270
_NETLINK_ADD_MEMBERSHIP = 1
_NETLINK_CAP_ACK = 10  # errors quote only the header of the request, not all of it
_NETLINK_EXT_ACK = 11  # errors carry an explanation in words
_NOTIFICATION = 0  # sequence number of messages that answer no request
_TIMEOUT_S = 5
_LARGE_BYTES = 65536  # of a datagram; a socket sends no more than its buffer has, 208 KiB by default
_SO_SNDBUFFORCE = 32
_RECEIVE_BYTES = 65536  # the kernel sends at most 32 KiB at once

# Each error takes about 1 KiB of the socket's receive buffer, 208 KiB by default. A full buffer would drop answers.
_REQUESTS_AT_ONCE = 128
_DUMP_ATTEMPTS = 10

# struct nlmsgerr and its attributes, see netlink(7)
_ACK_TLVS = 0x200  # NLM_F_ACK_TLVS: attributes follow
_ERROR_CODE = struct.Struct("=i")  # negative error number
_QUOTED_HEADER = 16  # bytes of the request behind the code: its header, and no more thanks to NETLINK_CAP_ACK
_ERROR_TEXT = 1  # NLMSGERR_ATTR_MSG


class NetlinkSocket:
    """A netlink socket. It stays in the network namespace that the calling thread was in when it was opened.

    Not thread-safe. Subclasses name the PROTOCOL.
    """

    __slots__ = ("_notifications", "_sequence", "_socket")

    PROTOCOL: int

    def __init__(self) -> None:
        self._notifications: list[Message] = []
        self._sequence = 1
        try:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, self.PROTOCOL)
        except OSError as error:
            raise kernel_error("open a netlink socket", error) from error
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_CAP_ACK, 1)
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_EXT_ACK, 1)
        # Not `settimeout`: that makes the socket non-blocking and costs a poll(2) for each receive.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", _TIMEOUT_S, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def execute(self, requests: Sequence[NetlinkRequest]) -> dict[int, KernelError]:
        """Executes all requests in order and returns the errors by position.

        An error does not stop the requests behind it. Raises KernelError if the kernel does not answer: it is then
        unknown which requests were executed.
        """
        return self._exchange(requests)[1]

    def execute_all(self, requests: Sequence[NetlinkRequest]) -> None:
        """Executes all requests; raises the first error as KernelError, after all of them were tried."""
        errors = self._exchange(requests)[1]
        if errors:
            raise errors[min(errors)]

    def execute_all_and_get(self, requests: Sequence[NetlinkRequest], query: NetlinkRequest) -> bytes:
        """As `execute_all`, then executes `query` in the same datagram and returns the body of its answer."""
        answers, errors = self._exchange([*requests, query])
        if errors:
            raise errors[min(errors)]
        return answers[len(requests)]

    def get(self, requests: Sequence[NetlinkRequest]) -> list[bytes | KernelError]:
        """Reads one object per request; returns the body of each answer, or its error."""
        answers, errors = self._exchange(requests)
        return [errors[position] if position in errors else answers[position] for position in range(len(requests))]

    def dump(self, request: NetlinkRequest, keep: Callable[[bytes], bool] | None = None) -> list[bytes]:
        """Lists all objects of a kind and returns the bodies of the answers; retries if they change meanwhile.

        With `keep` only those that it accepts are kept in memory: a pod can have millions of routes. If it raises, the
        rest of the answers would precede later ones: the socket is of no use any more.
        """
        return self.execute_all_and_dump([], request, keep)

    def execute_all_and_dump(
        self, requests: Sequence[NetlinkRequest], request: NetlinkRequest, keep: Callable[[bytes], bool] | None = None
    ) -> list[bytes]:
        """As `execute_all`, then `dump`, in the same datagram if the requests are few."""
        if len(requests) >= _REQUESTS_AT_ONCE:
            self.execute_all(requests)
            requests = []
        for _ in range(_DUMP_ATTEMPTS):
            bodies = self._dump_once(requests, request, keep)
            if bodies is not None:
                return bodies
            requests = []
        raise KernelError(request.what, errno.EINTR, f"changed during each of {_DUMP_ATTEMPTS} attempts to read them")

    def subscribe(self, group: int) -> None:
        """Subscribes to the notifications of a multicast group."""
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_ADD_MEMBERSHIP, group)

    def notifications(self, what: str) -> Iterator[Message]:
        """Yields the notifications since `subscribe` and waits for more; raises KernelError after 5 s."""
        deadline = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline:
            yield from self._notifications
            self._notifications = message.messages(self._receive(what))
        raise _timed_out(what)

    def fileno(self) -> int:
        """Returns the socket's descriptor."""
        return self._socket.fileno()

    def _exchange(self, requests: Sequence[NetlinkRequest]) -> tuple[dict[int, bytes], dict[int, KernelError]]:
        answers: dict[int, bytes] = {}
        errors: dict[int, KernelError] = {}
        for start in range(0, len(requests), _REQUESTS_AT_ONCE):
            part = requests[start : start + _REQUESTS_AT_ONCE]
            first = self._send(part)
            for answer in self._until_answered(range(first, first + len(part)), part[-1].what):
                position = answer.sequence - first
                if answer.kind != message.ERROR:
                    answers[start + position] = answer.body
                elif (error := _parse_error(answer, part[position].what)) is not None:
                    errors[start + position] = error
        return answers, errors

    def _execute_transaction(self, requests: Sequence[NetlinkRequest]) -> dict[int, KernelError]:
        """Executes requests that the kernel may answer in any number, and returns the errors by position.

        All answers are there when `send` returns, so they are read until there are no more.
        """
        first = self._send(requests)
        errors = {}
        for answer in self._answered():
            position = answer.sequence - first
            if answer.kind == message.ERROR and 0 <= position < len(requests):
                error = _parse_error(answer, requests[position].what)
                if error is not None:
                    errors[position] = error
        return errors

    def _answered(self) -> Iterator[Message]:
        """Yields the messages that have already been received."""
        while True:
            try:
                data = self._socket.recv(_RECEIVE_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError as error:
                raise kernel_error("read the answers of the kernel", error) from error
            yield from message.messages(data)

    def _dump_once(
        self, requests: Sequence[NetlinkRequest], request: NetlinkRequest, keep: Callable[[bytes], bool] | None
    ) -> list[bytes] | None:
        every = [*requests, request]
        first = self._send(every)
        bodies = []
        errors = []
        interrupted = False
        # Read to the end in any case, or the rest would precede the next answer.
        for answer in self._until_answered(range(first, first + len(every)), request.what):
            interrupted = interrupted or bool(answer.flags & message.DUMP_INTERRUPTED)  # any part may carry the flag
            if answer.kind not in (message.ERROR, message.DONE):
                if keep is None or keep(answer.body):
                    bodies.append(answer.body)
            elif (error := _parse_error(answer, every[answer.sequence - first].what)) is not None:
                errors.append(error)
        if errors:
            raise errors[0]
        return None if interrupted else bodies

    def _send(self, requests: Sequence[NetlinkRequest]) -> int:
        first = self._sequence
        self._sequence += len(requests)
        try:
            datagram = message.datagram(requests, first)
            if len(datagram) > _LARGE_BYTES:
                self._socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, len(datagram))
            self._socket.send(datagram)
        except OSError as error:
            raise kernel_error(requests[0].what, error) from error
        return first

    def _until_answered(self, sequences: range, what: str) -> Iterator[Message]:
        """Yields the answers up to and including the final one to the last request; keeps notifications for later."""
        while True:
            for answer in message.messages(self._receive(what)):
                if answer.sequence in sequences:
                    yield answer
                    if answer.kind in (message.ERROR, message.DONE) and answer.sequence == sequences[-1]:
                        return
                # Others are late answers to an earlier exchange that timed out.
                elif answer.sequence == _NOTIFICATION:
                    self._notifications.append(answer)

    def _receive(self, what: str) -> bytes:
        try:
            return self._socket.recv(_RECEIVE_BYTES)
        except BlockingIOError as error:  # SO_RCVTIMEO expired
            raise _timed_out(what) from error
        except OSError as error:
            raise kernel_error(what, error) from error


class RouteSocket(NetlinkSocket):
    """An rtnetlink socket: links, addresses, routes, rules and neighbours."""

    __slots__ = ()

    PROTOCOL = _NETLINK_ROUTE


def open_route_socket(netns_fd: int) -> RouteSocket:
    """Opens an rtnetlink socket in the network namespace `netns_fd`; raises NetnsError."""
    with InNetns(netns_fd):
        return RouteSocket()


def kernel_error(what: str, error: OSError) -> KernelError:
    """Converts the failure of a system call to a KernelError of the request."""
    return KernelError(what, error.errno or 0, os.strerror(error.errno or 0))


def _timed_out(what: str) -> KernelError:
    return KernelError(what, errno.ETIMEDOUT, f"the kernel did not answer within {_TIMEOUT_S} s")


def _parse_error(answer: Message, what: str) -> KernelError | None:
    """Returns the error in an NLMSG_ERROR or NLMSG_DONE, None if the request `what` succeeded."""
    (code,) = _ERROR_CODE.unpack_from(answer.body)
    if code >= 0:  # 0 is an acknowledgement
        return None
    reason = os.strerror(-code)
    text = message.attributes(answer.body[_error_attributes_at(answer) :]).get(_ERROR_TEXT)
    if text is not None:
        reason += " (" + text.rstrip(b"\0").decode() + ")"
    return KernelError(what, -code, reason)


def _error_attributes_at(answer: Message) -> int:
    if not answer.flags & _ACK_TLVS:
        return len(answer.body)
    # NLMSG_DONE has only the code; only NLMSG_ERROR quotes the request.
    return _ERROR_CODE.size + (_QUOTED_HEADER if answer.kind == message.ERROR else 0)
