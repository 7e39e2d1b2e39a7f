"""The receiver acknowledges each request at once, whatever other clients do, and leaves no request half accepted."""

import queue
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from cni_contrail.daemon.connection_source import ConnectionSource
from cni_contrail.daemon.protocol import ShimRequest
from cni_contrail.daemon.receiver import Receiver
from cni_contrail.daemon.reception import Reception
from cni_contrail.daemon.shim_connection import ShimConnection
from cni_contrail.errors import PluginError
from cni_contrail.log import Log
from contrail_service.file_limit import raise_file_limit
from tests.support.daemon_client import DaemonClient, request

STATUS = {"CNI_COMMAND": "STATUS"}
MOST_INCOMPLETE = 1024


class RunningReceiver:
    """A receiver on a socket; what it hands over is only collected, as if all threads were busy."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.received: queue.SimpleQueue[ShimRequest | PluginError] = queue.SimpleQueue()
        self._connections: list[ShimConnection] = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.source = ConnectionSource(self.listener, Log())
        reception = Reception(Log(), receive=self._collect, reject=self._collect)
        self.receiver = Receiver(self.source, Log(), reception)

    def start(self) -> None:
        """Starts to listen and to receive."""
        self.source.listen()
        self.receiver.start()

    def next(self) -> ShimRequest | PluginError:
        """What was handed over next."""
        return self.received.get(timeout=20)

    def close(self) -> None:
        """Stops the receiver and closes all connections that it handed over."""
        self.receiver.stop()
        self.listener.close()
        for connection in self._connections:
            connection.close()

    def _collect(self, connection: ShimConnection, handed_over: ShimRequest | PluginError) -> None:
        self._connections.append(connection)
        self.received.put(handed_over)


@pytest.fixture(autouse=True, scope="module")
def many_files() -> None:
    raise_file_limit()


@pytest.fixture
def running() -> Iterator[RunningReceiver]:
    with tempfile.TemporaryDirectory(prefix="ct-") as folder:
        running = RunningReceiver(f"{folder}/cni.sock")
        running.start()
        yield running
        running.close()


@pytest.fixture
def clients(running: RunningReceiver) -> Iterator[ExitStack]:
    """Hangs up all connections at the end of a test."""
    with ExitStack() as clients:
        yield clients


def connect(running: RunningReceiver, clients: ExitStack) -> DaemonClient:
    return clients.enter_context(DaemonClient(running.path))


def test_requests_are_acknowledged_while_no_call_ends(running: RunningReceiver, clients: ExitStack) -> None:
    connections = [connect(running, clients) for _ in range(700)]
    for client in connections:
        client.ask(STATUS, b"{}")
    for client in connections:
        client.acknowledged()


def test_a_request_in_two_parts_is_handed_over_whole(running: RunningReceiver, clients: ExitStack) -> None:
    whole = request(STATUS, b"{}", netns=-1)
    client = connect(running, clients)
    client.send(whole[:30])
    between = connect(running, clients)
    between.ask(STATUS, b"another")
    between.acknowledged()
    client.send(whole[30:])
    client.acknowledged()
    assert [running.next() for _ in range(2)] == [
        ShimRequest(STATUS, b"another", 0),
        ShimRequest(STATUS, b"{}", 0),
    ]


def test_a_client_that_sends_without_end_does_not_delay_others(running: RunningReceiver, clients: ExitStack) -> None:
    whole = request(STATUS, b" " * 1024 * 1024, netns=-1)
    large = [connect(running, clients) for _ in range(20)]
    for client in large:
        client.send(whole[:150_000])
    small = connect(running, clients)
    small.ask(STATUS, b"{}")
    small.acknowledged()
    assert running.next() == ShimRequest(STATUS, b"{}", 0)


def test_silent_connections_give_way_to_newer_ones(running: RunningReceiver, clients: ExitStack) -> None:
    first = connect(running, clients)
    others = [connect(running, clients) for _ in range(MOST_INCOMPLETE)]
    assert first.is_closed()
    others[-1].ask(STATUS, b"{}")
    others[-1].acknowledged()


def test_a_client_that_hangs_up_in_the_middle_is_forgotten(running: RunningReceiver, clients: ExitStack) -> None:
    for _ in range(MOST_INCOMPLETE):
        with DaemonClient(running.path) as hasty:
            hasty.send(b"cnid")
    client = connect(running, clients)
    client.ask(STATUS, b"{}")
    client.acknowledged()
    assert running.next() == ShimRequest(STATUS, b"{}", 0)


def test_a_request_of_another_version_is_handed_over_for_its_rejection(
    running: RunningReceiver, clients: ExitStack
) -> None:
    client = connect(running, clients)
    client.send(request(STATUS, b"{}", version=9, netns=-1)[:6])
    rejected = running.next()
    assert isinstance(rejected, PluginError)
    assert rejected.code == 107


def test_connections_without_a_whole_request_are_closed_at_the_end(
    running: RunningReceiver, clients: ExitStack
) -> None:
    """Their shims repeat the request, which the next daemon serves."""
    half = connect(running, clients)
    half.send(b"cnid")
    running.receiver.stop()
    assert half.is_closed()
    with socket.socket(socket.AF_UNIX) as late, pytest.raises(ConnectionRefusedError):
        late.connect(running.path)


def test_connections_that_were_not_accepted_are_closed_at_the_end() -> None:
    with tempfile.TemporaryDirectory(prefix="ct-") as folder:
        running = RunningReceiver(f"{folder}/cni.sock")
        running.listener.listen()
        with DaemonClient(running.path) as early:
            early.ask(STATUS, b"{}")
            running.source._stopped.set()
            running.start()
            assert early.is_closed()
        running.close()
