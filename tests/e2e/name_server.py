"""Servers that tell a client its address, over TCP and UDP, in network namespaces of a test; and their clients."""

import contextlib
import re
import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

from tests.support.netns import inside

TCP, UDP = "TCP", "UDP"
_TIMEOUT = 5.0
_CHUNK = 1 << 16
_MAPPED = "::ffff:"  # an IPv4 client of an IPv6 socket


class Answer(NamedTuple):
    """Name of the server that answered, and the client's address as it saw it."""

    server: str
    client: str


class _Servers:
    """One server per protocol; both have the name."""

    def __init__(self, name: str, port: int) -> None:
        class Streams(socketserver.ThreadingTCPServer):
            address_family = socket.AF_INET6
            allow_reuse_address = True
            daemon_threads = True

        class Datagrams(socketserver.ThreadingUDPServer):
            address_family = socket.AF_INET6
            daemon_threads = True

        class Stream(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(ConnectionError):
                    for line in self.rfile:
                        self._serve(*line.decode().split())

            def _serve(self, request: str, size: str = "0") -> None:
                if request == "give":
                    self.wfile.write(bytes(int(size)))
                    return
                if request == "take":
                    self.rfile.read(int(size))
                self.wfile.write(_answer(name, self.client_address[0]) + b"\n")

        class Datagram(socketserver.DatagramRequestHandler):
            def handle(self) -> None:
                self.wfile.write(_answer(name, self.client_address[0]))

        self.all: tuple[socketserver.BaseServer, ...] = (
            Streams(("::", port), Stream),
            Datagrams(("::", port), Datagram),
        )


class Connection:
    """A TCP connection from a namespace (a path) to a server, kept open; use as a context manager."""

    def __init__(self, namespace: Path, address: str, port: int) -> None:
        self._socket = _socket(namespace, address, socket.SOCK_STREAM)
        try:
            self._socket.connect((address, port))
        except OSError:
            self._socket.close()
            raise
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes it. Idempotent."""
        self._file.close()
        self._socket.close()

    def ask(self) -> Answer:
        """Asks for the names."""
        self._socket.sendall(b"who\n")
        return self._answer()

    def send(self, size: int) -> None:
        """Sends so many bytes, and returns when the server has them."""
        self._socket.sendall(b"take %d\n" % size + bytes(size))
        self._answer()

    def receive(self, size: int) -> None:
        """Receives so many bytes."""
        self._socket.sendall(b"give %d\n" % size)
        assert len(self._file.read(size)) == size

    def _answer(self) -> Answer:
        line = self._file.readline()
        assert line, "closed by the server"
        return _parsed(line)


@contextlib.contextmanager
def serve_names(namespace: Path, name: str, port: int) -> Iterator[None]:
    """Serves in the namespace (a path), at all its addresses, until the context is left."""
    with inside(str(namespace)):
        servers = _Servers(name, port).all
    threads = [threading.Thread(target=server.serve_forever, args=(0.05,)) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            thread.join(_TIMEOUT)
            server.server_close()


def ask(namespace: Path, address: str, port: int, protocol: str = TCP) -> Answer:
    """Asks a server from a namespace (a path); raises OSError without an answer."""
    if protocol == TCP:
        with Connection(namespace, address, port) as connection:
            return connection.ask()
    with _socket(namespace, address, socket.SOCK_DGRAM) as asking:
        asking.connect((address, port))
        asking.send(b"who")
        return _parsed(asking.recv(_CHUNK))


def _socket(namespace: Path, address: str, kind: socket.SocketKind) -> socket.socket:
    with inside(str(namespace)):
        made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
    made.settimeout(_TIMEOUT)
    return made


def _answer(name: str, client: str) -> bytes:
    return f"{name} {client.removeprefix(_MAPPED)}".encode()


def _parsed(answer: bytes) -> Answer:
    found = re.fullmatch(r"(\S+) (\S+)\n?", answer.decode())
    assert found is not None, answer
    return Answer(*found.groups())
