"""A conversation with the kernel's rtnetlink: requests out in one datagram, refusals and answers back.

The kernel does the work within the system call that sends, so that the answers are there when it returns, and one
acknowledgement is enough for a whole datagram (see `message.datagram`). Refusals come with the kernel's own words
(NETLINK_EXT_ACK). The receive time-out is there so that nothing waits for ever if an answer is lost.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from types import TracebackType

from cni_contrail.link import message
from cni_contrail.link.errors import KernelError
from cni_contrail.link.message import Message, Request
from cni_contrail.link.netns import Inside
from cni_contrail.link.refusal import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_NETLINK_ROUTE = 0
_SOL_NETLINK = 270
_NETLINK_ADD_MEMBERSHIP = 1
_NETLINK_CAP_ACK = 10  # refusals do not quote the whole request
_NETLINK_EXT_ACK = 11  # refusals say why in words
_NOTIFICATION = 0  # its sequence number
_TIMEOUT_S = 5
_RECEIVE_BYTES = 65536  # the kernel sends at most 32 KiB at once

# Each refusal takes about 1 KiB of the socket's receive buffer, 208 KiB by default: so many are never too many.
_REQUESTS_AT_ONCE = 128
_DUMP_ATTEMPTS = 10


class RouteSocket:
    """An rtnetlink socket in the network namespace that the calling thread was in when it was opened.

    Not for use by several threads at once.
    """

    __slots__ = ("_heard", "_sequence", "_socket")

    def __init__(self) -> None:
        self._heard: list[Message] = []
        self._sequence = 1
        try:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_ROUTE)
        except OSError as error:
            raise failure("open a netlink socket", error) from error
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_CAP_ACK, 1)
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_EXT_ACK, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", _TIMEOUT_S, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def carry_out(self, requests: Sequence[Request]) -> dict[int, KernelError]:
        """Has all requests carried out, in order, and returns those refused: position to refusal.

        A refusal does not stop the requests behind it. Raises KernelError if the kernel does not answer: then nobody
        knows what was done.
        """
        return self._ask(requests)[1]

    def carry_out_all(self, requests: Sequence[Request]) -> None:
        """Has all requests carried out; raises the first refusal as KernelError."""
        refusals = self._ask(requests)[1]
        if refusals:
            raise refusals[min(refusals)]

    def carry_out_all_and_get(self, requests: Sequence[Request], question: Request) -> bytes:
        """As `carry_out_all`, and returns the body of the answer to what is asked behind them."""
        answers, refusals = self._ask([*requests, question])
        if refusals:
            raise refusals[min(refusals)]
        return answers[len(requests)]

    def get(self, requests: Sequence[Request]) -> list[bytes | KernelError]:
        """Asks for one object per request; returns the body of each answer, or its refusal."""
        answers, refusals = self._ask(requests)
        return [refusals[position] if position in refusals else answers[position] for position in range(len(requests))]

    def dump(self, request: Request) -> list[bytes]:
        """Asks for all objects of a kind, again if they changed meanwhile; returns the bodies of the answers."""
        for _ in range(_DUMP_ATTEMPTS):
            bodies = self._dump_once(request)
            if bodies is not None:
                return bodies
        raise KernelError(request.what, errno.EINTR, f"changed during each of {_DUMP_ATTEMPTS} attempts to read them")

    def listen(self, group: int) -> None:
        """Has the kernel send the notifications of a group from now on."""
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_ADD_MEMBERSHIP, group)

    def heard(self, what: str) -> Iterator[Message]:
        """Yields the notifications since `listen`, and waits for more; KernelError if that takes longer than 5 s."""
        deadline = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline:
            yield from self._heard
            self._heard = list(message.messages(self._receive(what)))
        raise _silence(what)

    def fileno(self) -> int:
        """Returns the socket's descriptor."""
        return self._socket.fileno()

    def _ask(self, requests: Sequence[Request]) -> tuple[dict[int, bytes], dict[int, KernelError]]:
        answers: dict[int, bytes] = {}
        refusals: dict[int, KernelError] = {}
        for start in range(0, len(requests), _REQUESTS_AT_ONCE):
            part = requests[start : start + _REQUESTS_AT_ONCE]
            first = self._send(part)
            last = first + len(part) - 1
            for answer in self._until_answered(last, part[-1].what):
                position = answer.sequence - first
                if not 0 <= position < len(part):
                    continue
                if answer.kind != message.ERROR:
                    answers[start + position] = answer.body
                elif (refused := refusal(answer, part[position].what)) is not None:
                    refusals[start + position] = refused
        return answers, refusals

    def _dump_once(self, request: Request) -> list[bytes] | None:
        sequence = self._send([request])
        bodies = []
        interrupted = False
        for answer in self._until_answered(sequence, request.what):
            if answer.sequence != sequence:
                continue
            interrupted = interrupted or bool(answer.flags & message.DUMP_INTERRUPTED)
            if answer.kind not in (message.ERROR, message.DONE):
                bodies.append(answer.body)
            elif (refused := refusal(answer, request.what)) is not None:
                raise refused
        return None if interrupted else bodies

    def _send(self, requests: Sequence[Request]) -> int:
        first = self._sequence
        self._sequence += len(requests)
        try:
            self._socket.send(message.datagram(requests, first))
        except OSError as error:
            raise failure(requests[0].what, error) from error
        return first

    def _until_answered(self, last: int, what: str) -> Iterator[Message]:
        """Yields messages up to and including the one that ends the answer to request `last`."""
        while True:
            for answer in message.messages(self._receive(what)):
                if answer.sequence == _NOTIFICATION:
                    self._heard.append(answer)
                    continue
                yield answer
                if answer.sequence == last and answer.kind in (message.ERROR, message.DONE):
                    return

    def _receive(self, what: str) -> bytes:
        try:
            return self._socket.recv(_RECEIVE_BYTES)
        except BlockingIOError as error:
            raise _silence(what) from error
        except OSError as error:
            raise failure(what, error) from error


def route_socket_in(netns_fd: int) -> RouteSocket:
    """Opens an rtnetlink socket in the network namespace `netns_fd`; raises NetnsError."""
    with Inside(netns_fd):
        return RouteSocket()


def _silence(what: str) -> KernelError:
    return KernelError(what, errno.ETIMEDOUT, f"the kernel did not answer within {_TIMEOUT_S} s")


def failure(what: str, error: OSError) -> KernelError:
    """Returns a system call's failure as what it means for the request."""
    return KernelError(what, error.errno or 0, os.strerror(error.errno or 0))
