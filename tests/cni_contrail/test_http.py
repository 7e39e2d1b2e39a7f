"""HTTP exchanges with an agent: every form of response, and malformed ones."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cni_contrail.agent.connections import idle_connections
from cni_contrail.agent.http import Endpoint, HttpExchange, HttpResponse
from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, PluginError, UnreachableError

Serve = Callable[..., Endpoint]


class Server:
    """Answers one connection with fixed bytes, in parts; `requests` holds the received bytes."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "s")
        self.requests: list[bytes] = []
        self._threads: list[threading.Thread] = []

    def __call__(self, *parts: bytes, keep_open: bool = False) -> Endpoint:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen()
        self._release = threading.Event()
        thread = threading.Thread(target=self._answer, args=(listener, parts, keep_open))
        thread.start()
        self._threads.append(thread)
        return Endpoint(self.path, "", 0)

    def close(self) -> None:
        for thread in self._threads:
            self._release.set()
            thread.join(10)

    def _answer(self, listener: socket.socket, parts: tuple[bytes, ...], keep_open: bool) -> None:
        client, _ = listener.accept()
        with client, listener:
            self.requests.append(client.recv(65536))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it had seen enough
                for part in parts:
                    client.sendall(part)
            if keep_open:
                self._release.wait(10)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


def ask(endpoint: Endpoint, seconds: float = 5, body: bytes = b"") -> HttpResponse:
    return HttpExchange(endpoint, "GET", "/x?y=z", body, Deadline(seconds)).response()


def test_a_request_has_path_host_and_length(serve: Server) -> None:
    ask(serve(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), body=b"{}")
    [request] = serve.requests
    assert request.split(b"\r\n") == [
        b"GET /x?y=z HTTP/1.1",
        b"Host: localhost",
        b"Content-Type: application/json",
        b"Content-Length: 2",
        b"",
        b"{}",
    ]


@pytest.mark.parametrize(
    "parts",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",),
        (b"HTTP/1.1 200 OK\r\ncontent-length:5\r\nX: y:z\r\n\r\nhello and more",),
        (b"HTTP/1.0 200 OK\r\n\r\n", b"hel", b"lo"),
        (b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello",),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",),
        tuple(
            bytes([byte]) for byte in b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        ),
    ],
)
def test_bodies_are_read_by_length_in_chunks_or_up_to_the_end(serve: Server, parts: tuple[bytes, ...]) -> None:
    assert ask(serve(*parts)) == HttpResponse(200, b"hello")


@pytest.mark.parametrize(
    "interim",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\nContent-Length: 9\r\n\r\n",
    ],
    ids=["one", "several with headers"],
)
def test_interim_responses_are_skipped(serve: Server, interim: bytes) -> None:
    answer = ask(serve(interim, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", keep_open=True))
    assert answer == HttpResponse(200, b"hello")


def test_interim_responses_end_with_the_deadline(serve: Server) -> None:
    with pytest.raises(UnreachableError, match="timed out waiting for a response"):
        ask(serve(b"HTTP/1.1 100 Continue\r\n\r\n" * 3, keep_open=True), seconds=0.2)


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_body_ends_with_its_head(serve: Server, status: int) -> None:
    """Neither a missing length nor one that counts a body that is not sent makes the client wait."""
    answer = ask(serve(f"HTTP/1.1 {status} OK\r\nContent-Length: 7\r\n\r\n".encode(), keep_open=True))
    assert answer == HttpResponse(status, b"")
    kept = idle_connections.take(Endpoint(serve.path, "", 0))
    assert kept is not None
    kept.close()


def test_an_agent_that_keeps_the_connection_open_causes_no_wait(serve: Server) -> None:
    answer = ask(serve(b"HTTP/1.1 404 OK\r\nContent-Length: 2\r\n\r\n{}", keep_open=True), seconds=60)
    assert answer == HttpResponse(404, b"{}")


@pytest.mark.parametrize(
    "parts",
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n",),
        (b"HTTP/1.1 abc OK\r\n\r\n",),
        (b"\r\n\r\n",),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",),
        (b"x" * 70000,),
        (b"HTTP/1.1 200 OK\r\n\r\n", *[b"x" * 65536] * 70),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *[b"10000\r\n" + b"x" * 65536 + b"\r\n"] * 70),
    ],
    ids=range(10),
)
def test_a_response_that_is_not_http_is_an_error_with_the_address(serve: Server, parts: tuple[bytes, ...]) -> None:
    with pytest.raises(PluginError) as caught:
        ask(serve(*parts))
    assert caught.value.code == Code.BAD_AGENT_RESPONSE
    assert serve.path in caught.value.message


@pytest.mark.parametrize(
    "parts", [(), (b"HTTP/1.1 200 OK\r\n",), (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",)]
)
def test_a_response_that_breaks_off_is_unreachable(serve: Server, parts: tuple[bytes, ...]) -> None:
    with pytest.raises(UnreachableError, match=r"closed before the end of the response|reset"):
        ask(serve(*parts))


def test_the_deadline_covers_the_whole_exchange(serve: Server) -> None:
    with pytest.raises(UnreachableError, match="timed out waiting for a response"):
        ask(serve(b"HTTP/1.1 200 OK\r\n", keep_open=True), seconds=0.2)
    with pytest.raises(UnreachableError, match="timed out waiting for a response"):
        ask(Endpoint(serve.path, "", 0), seconds=0)


def test_the_text_of_an_endpoint_is_its_address() -> None:
    assert str(Endpoint("/run/x.sock", "127.0.0.1", 9091)) == "unix:/run/x.sock"
    assert str(Endpoint("", "127.0.0.1", 9091)) == "http://127.0.0.1:9091"
    assert str(Endpoint("", "fd00::1", 9091)) == "http://[fd00::1]:9091"


def test_a_host_name_is_resolved() -> None:
    with pytest.raises(UnreachableError, match=r"http://localhost:1: Connection refused"):
        ask(Endpoint("", "localhost", 1))


def test_the_deadline_covers_name_resolution(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    monkeypatch.setattr(socket, "gethostbyname", lambda host: released.wait(20))
    with pytest.raises(UnreachableError, match="timed out waiting for a response"):
        ask(Endpoint("", "agent.example", 9091), seconds=0.1)
    released.set()


def test_a_host_that_does_not_exist_is_unreachable() -> None:
    with pytest.raises(UnreachableError, match=r"http://agent\.invalid:9091"):
        ask(Endpoint("", "agent.invalid", 9091))
