"""Acceptors run the calls that they receive, and while all of them are at work the receiver takes the connections."""

import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from queue import SimpleQueue
from typing import NamedTuple

import pytest

from cni_contrail.daemon import acceptor
from cni_contrail.daemon.acceptor import Acceptor
from cni_contrail.daemon.connection_source import ConnectionSource
from cni_contrail.daemon.listener import bound_socket
from cni_contrail.daemon.protocol import ShimRequest
from cni_contrail.daemon.receiver import Receiver
from cni_contrail.daemon.reception import Reception
from cni_contrail.daemon.shim_connection import ShimConnection
from cni_contrail.deadline import Deadline
from cni_contrail.errors import PluginError
from cni_contrail.log import Log
from tests.support.daemon_client import DaemonClient, request

TIMEOUT = 20  # seconds
STATUS = {"CNI_COMMAND": "STATUS"}


class Received(NamedTuple):
    """A request or its rejection, the thread in which it was handed over, and whether that is an acceptor."""

    handed_over: ShimRequest | PluginError
    thread: int
    by_acceptor: bool


class Threads:
    """Two acceptors, whose calls end when the test says so, and a receiver, whose calls end at once."""

    def __init__(self, path: str, source: ConnectionSource) -> None:
        self.path = path
        self.received: SimpleQueue[Received] = SimpleQueue()
        self.may_end = threading.Semaphore(0)
        self.started: set[threading.Thread] = set()
        self._source = source
        self._connections: list[ShimConnection] = []
        log = Log()
        here = Reception(log, receive=self._run, reject=self._run)
        self._acceptors = [Acceptor(source, log, here) for _ in range(2)]
        self.receiver = Receiver(source, log, Reception(log, receive=self._collect, reject=self._collect))

    def start(self) -> None:
        """Starts all, the receiver last."""
        before = set(threading.enumerate())
        self._source.listen()
        for each in self._acceptors:
            each.start()
        self.receiver.start()
        self.started = set(threading.enumerate()) - before

    def next(self) -> Received:
        """What was handed over next."""
        return self.received.get(timeout=TIMEOUT)

    def close(self) -> None:
        """Lets all calls end and stops."""
        self.may_end.release(100)
        self.receiver.stop()
        for each in self._connections:
            each.close()

    def _run(self, connection: ShimConnection, handed_over: ShimRequest | PluginError) -> None:
        self._note(connection, handed_over, by_acceptor=True)
        assert self.may_end.acquire(timeout=TIMEOUT)

    def _collect(self, connection: ShimConnection, handed_over: ShimRequest | PluginError) -> None:
        self._note(connection, handed_over, by_acceptor=False)

    def _note(self, connection: ShimConnection, handed_over: ShimRequest | PluginError, *, by_acceptor: bool) -> None:
        self._connections.append(connection)
        self.received.put(Received(handed_over, threading.get_ident(), by_acceptor))
        if isinstance(handed_over, ShimRequest) and handed_over.input == b"fails":
            raise AssertionError("a bug")


@pytest.fixture
def threads() -> Iterator[Threads]:
    with tempfile.TemporaryDirectory(prefix="ct-") as folder:
        path = f"{folder}/cni.sock"
        with bound_socket(path) as listener:
            threads = Threads(path, ConnectionSource(listener, Log()))
            threads.start()
            yield threads
            threads.close()


@pytest.fixture
def clients() -> Iterator[ExitStack]:
    with ExitStack() as clients:
        yield clients


def ask(threads: Threads, clients: ExitStack, data: bytes) -> DaemonClient:
    client = clients.enter_context(DaemonClient(threads.path))
    client.ask(STATUS, data)
    client.acknowledged()
    return client


def ask_acceptor(threads: Threads, clients: ExitStack, data: bytes = b"{}") -> Received:
    """Asks until an acceptor has the request: one that has just been at work may not wait yet."""
    for _ in Deadline(TIMEOUT).attempts(0.001, 0.01):
        ask(threads, clients, data)
        received = threads.next()
        assert received.handed_over == ShimRequest(STATUS, data, 0)
        if received.by_acceptor:
            return received
    raise AssertionError("no acceptor accepts")


def test_calls_run_in_the_threads_that_accepted_them(threads: Threads, clients: ExitStack) -> None:
    assert ask_acceptor(threads, clients).thread != ask_acceptor(threads, clients).thread


def test_the_receiver_accepts_while_all_acceptors_are_at_work(threads: Threads, clients: ExitStack) -> None:
    for _ in range(2):
        ask_acceptor(threads, clients)
    for data in (b"3", b"4"):
        ask(threads, clients, data)
        received = threads.next()
        assert received.handed_over == ShimRequest(STATUS, data, 0)
        assert not received.by_acceptor


def test_an_acceptor_accepts_again_when_its_call_has_ended(threads: Threads, clients: ExitStack) -> None:
    used = set()
    for _ in range(10):
        used.add(ask_acceptor(threads, clients).thread)
        threads.may_end.release()
    assert len(used) <= 2


def test_a_request_that_comes_in_parts_delays_no_other(threads: Threads, clients: ExitStack) -> None:
    whole = request(STATUS, b"{}", netns=-1)
    slow = [clients.enter_context(DaemonClient(threads.path)) for _ in range(2)]
    for client in slow:
        client.send(whole[:30])
    ask(threads, clients, b"another")
    assert threads.next().handed_over == ShimRequest(STATUS, b"another", 0)
    for client in slow:
        client.send(whole[30:])
        client.acknowledged()
        assert threads.next().handed_over == ShimRequest(STATUS, b"{}", 0)


def test_an_acceptor_closes_connections_that_stay_silent(
    threads: Threads, clients: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceptor, "REQUEST_TIMEOUT", 0.05)
    silent = [clients.enter_context(DaemonClient(threads.path)) for _ in range(3)]
    assert all(client.is_closed() for client in silent)
    ask_acceptor(threads, clients)


def test_an_acceptor_survives_calls_that_fail(threads: Threads, clients: ExitStack) -> None:
    for _ in range(4):
        assert ask(threads, clients, b"fails").is_closed()
        threads.next()
    ask_acceptor(threads, clients)


def test_all_threads_end_when_the_daemon_stops(threads: Threads) -> None:
    assert len(threads.started) == 3
    threads.receiver.stop()
    for each in threads.started:
        each.join(TIMEOUT)
    assert not any(each.is_alive() for each in threads.started)
