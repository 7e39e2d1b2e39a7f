"""Idle connections to the agent: reuse, and recovery where the agent has closed them."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cni_contrail.agent.connections import idle_connections
from cni_contrail.agent.http import Endpoint, HttpExchange, HttpResponse
from cni_contrail.deadline import Deadline
from cni_contrail.errors import UnreachableError

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
TIMEOUT = 5.0  # seconds


class KeepingServer:
    """Answers each request on a connection with the same bytes, `at_most` of them, and counts the connections."""

    def __init__(self, folder: Path, reply: bytes = OK, at_most: int = 100) -> None:
        self.endpoint = Endpoint(str(folder / "s"), "", 0)
        self.accepted = 0
        self.closed = threading.Semaphore(0)
        self._reply = reply
        self._at_most = at_most
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.endpoint.socket_path)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # a test closed it already
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        idle_connections.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, contextlib.suppress(ConnectionError):  # the client may close first
            for _ in range(self._at_most):
                if not client.recv(65536):
                    return
                client.sendall(self._reply)
        self.closed.release()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KeepingServer]:
    running = KeepingServer(tmp_path)
    yield running
    running.close()


def asked(server: KeepingServer) -> HttpExchange:
    return HttpExchange(server.endpoint, "GET", "/", b"", Deadline(TIMEOUT))


def test_consecutive_requests_share_a_connection(server: KeepingServer) -> None:
    assert [asked(server).response() for _ in range(3)] == [HttpResponse(200, b"ok")] * 3
    assert server.accepted == 1


def test_concurrent_requests_use_separate_connections(server: KeepingServer) -> None:
    first, second = asked(server), asked(server)
    assert (second.response(), first.response()) == (HttpResponse(200, b"ok"), HttpResponse(200, b"ok"))
    assert server.accepted == 2


def test_a_limited_number_of_idle_connections_is_kept(server: KeepingServer) -> None:
    for each in [asked(server) for _ in range(20)]:
        each.response()
    for each in [asked(server) for _ in range(20)]:
        each.response()
    assert server.accepted == 20 + 12


def test_closing_a_request_closes_its_connection(server: KeepingServer) -> None:
    asked(server).close()
    asked(server).response()
    assert server.accepted == 2


def test_a_connection_closed_by_the_agent_is_not_reused(tmp_path: Path) -> None:
    server = KeepingServer(tmp_path, at_most=1)
    for _ in range(3):
        asked(server).response()
        assert server.closed.acquire(timeout=TIMEOUT)
    assert server.accepted == 3
    server.close()


def test_a_request_is_resent_if_the_agent_closes_the_reused_connection(tmp_path: Path) -> None:
    server = KeepingServer(tmp_path)
    ours, theirs = socket.socketpair()
    idle_connections.keep(server.endpoint, ours)
    request = asked(server)
    theirs.close()
    assert request.response() == HttpResponse(200, b"ok")
    assert server.accepted == 1
    server.close()


def test_a_stopped_agent_is_unreachable_despite_idle_connections(server: KeepingServer) -> None:
    asked(server).response()
    server.close()
    ours, theirs = socket.socketpair()
    idle_connections.keep(server.endpoint, ours)
    request = asked(server)
    theirs.close()
    with pytest.raises(UnreachableError, match="refused"):
        request.response()


@pytest.mark.parametrize(
    "reply",
    [
        OK.replace(b"1.1", b"1.0"),
        OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        OK + b"more than was said",
    ],
    ids=["of HTTP 1.0", "that says that it is the last", "with something behind it"],
)
def test_a_connection_that_cannot_be_reused_is_replaced(tmp_path: Path, reply: bytes) -> None:
    server = KeepingServer(tmp_path, reply)
    for _ in range(2):
        assert asked(server).response() == HttpResponse(200, b"ok")
    assert server.accepted == 2
    server.close()
