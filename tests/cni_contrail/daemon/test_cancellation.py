"""Cancellation of an ADD before and during its wait."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from cni_contrail.daemon.cancellation import CancellableCalls
from cni_contrail.daemon.shim_connection import ShimConnection
from cni_contrail.deadline import Deadline
from cni_contrail.errors import TryAgainError

ATTACHMENT = ("container", "eth0")
DELETED = "attachment eth0: deleted while ADD was waiting for its interfaces"


@pytest.fixture
def adds() -> CancellableCalls:
    return CancellableCalls()


@pytest.fixture
def unreadable_socket() -> Iterator[socket.socket]:
    """A peer that never responds, such as an agent without the pod's list."""
    ours, others = socket.socketpair()
    with ours, others:
        yield ours


@pytest.fixture
def connection() -> Iterator[ShimConnection]:
    ours, others = socket.socketpair()
    with ours, others:
        yield ShimConnection(ours)


def test_an_add_cancelled_before_its_first_wait_fails_at_that_wait(
    adds: CancellableCalls, unreadable_socket: socket.socket, connection: ShimConnection
) -> None:
    with contextlib.closing(adds.add(ATTACHMENT, connection)) as cancellation:
        adds.cancel(ATTACHMENT)
        with pytest.raises(TryAgainError, match=DELETED):
            Deadline(60, cancellation).wait_readable(unreadable_socket.fileno())


def test_an_add_cancelled_while_it_waits_fails_at_once(
    adds: CancellableCalls, unreadable_socket: socket.socket, connection: ShimConnection
) -> None:
    reasons: list[str] = []

    def wait() -> None:
        try:
            Deadline(60, cancellation).wait_readable(unreadable_socket.fileno())
        except TryAgainError as error:
            reasons.append(error.message)

    with contextlib.closing(adds.add(ATTACHMENT, connection)) as cancellation:
        waiting = threading.Thread(target=wait)
        waiting.start()
        adds.cancel(ATTACHMENT)
        waiting.join(10)
    assert reasons == [DELETED]


def test_cancelling_another_attachment_has_no_effect(
    adds: CancellableCalls, unreadable_socket: socket.socket, connection: ShimConnection
) -> None:
    with contextlib.closing(adds.add(ATTACHMENT, connection)) as cancellation:
        adds.cancel(("container", "eth1"))
        with pytest.raises(TimeoutError):
            Deadline(0.01, cancellation).wait_readable(unreadable_socket.fileno())
