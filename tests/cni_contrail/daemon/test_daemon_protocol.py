"""The request: which ones the daemon accepts and rejects, and that no client can block it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from tests.cni_contrail.conftest import until
from tests.cni_contrail.daemon.conftest import error
from tests.support.daemon_client import DaemonClient, DaemonResponse, request
from tests.support.plugin_callers import ShimAndDaemon

STATUS = {"CNI_COMMAND": "STATUS", "CNI_PATH": "/opt/cni/bin"}


@pytest.fixture
def path(caller: ShimAndDaemon) -> str:
    caller.daemon()
    return caller.socket_path


@pytest.fixture
def sent(tmp_path: Path) -> Iterator[TextIO]:
    """A file that no process has open but this one, and those that get its descriptor."""
    with (tmp_path / "sent").open("w") as file:
        yield file


def has_open(caller: ShimAndDaemon, file: TextIO) -> bool:
    """Whether the daemon has the file open."""
    return os.path.realpath(file.name) in map(os.path.realpath, Path(f"/proc/{caller.pid}/fd").iterdir())


def test_a_version_mismatch_names_both_versions(path: str) -> None:
    with DaemonClient(path) as client:
        client.send(request(STATUS, b"x" * 100_000, version=7, netns=-1))
        client.acknowledged()
        message = error(client.answered(), 107)
    assert message == "protocol mismatch: the shim has version 7, the daemon version 2"


@pytest.mark.parametrize("sizes", [(64 * 1024 + 1, 0), (0, 1024 * 1024 + 1)])
def test_an_oversized_request_is_rejected_before_it_is_read(path: str, sizes: tuple[int, int]) -> None:
    environment, data = sizes
    with DaemonClient(path) as client:
        client.send(request({"CNI_X": "x" * environment} if environment else {}, b" " * data, netns=-1)[:2000])
        client.acknowledged()
        assert "too large" in error(client.answered(), 107)


def test_the_largest_request_is_served(path: str) -> None:
    with DaemonClient(path) as client:
        config = json.dumps({"cniVersion": "1.1.0", "name": "n"}).encode().ljust(1024 * 1024)
        client.send(request({**STATUS, "CNI_ARGS": "X=" + "x" * 60_000}, config, netns=-1))
        client.acknowledged()
        error(client.answered(), 50)


@pytest.mark.parametrize("netns", [-2, 0])
def test_an_inconsistent_netns_field_is_rejected(path: str, netns: int) -> None:
    with DaemonClient(path) as client:
        client.send(request(STATUS, b"{}", netns=netns))
        client.acknowledged()
        error(client.answered(), 107)


def test_an_unannounced_descriptor_is_rejected_and_closed(path: str, caller: ShimAndDaemon, sent: TextIO) -> None:
    with DaemonClient(path) as client:
        client.send(request(STATUS, b"{}", netns=-1), [sent.fileno()])
        client.acknowledged()
        error(client.answered(), 107)
        assert client.is_closed()
    until(lambda: not has_open(caller, sent))


def test_surplus_descriptors_are_closed(path: str, caller: ShimAndDaemon, sent: TextIO) -> None:
    with DaemonClient(path) as client:
        client.send(request(STATUS, b"{}"), [sent.fileno()] * 5)
        client.acknowledged()
        client.answered()
        assert client.is_closed()
    until(lambda: not has_open(caller, sent))


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 20, request(STATUS, b"{}", netns=-1)[:-1]])
def test_an_incomplete_request_is_closed_without_a_response(path: str, data: bytes) -> None:
    """The daemon waits at most 2 s for the rest."""
    with DaemonClient(path) as client:
        client.send(data)
        assert client.is_closed()


def test_a_request_sent_byte_by_byte_is_served(path: str) -> None:
    with DaemonClient(path) as client:
        for byte in request(STATUS, b"{", netns=-1):
            client.send(bytes([byte]))
        client.acknowledged()
        error(client.answered(), 6)


def test_a_request_with_trailing_bytes_is_closed_without_a_response(path: str) -> None:
    with DaemonClient(path) as client:
        client.send(request(STATUS, b"{}", netns=-1) + b"x")
        assert client.is_closed()


def test_silent_connections_do_not_block_others(path: str) -> None:
    silent = [DaemonClient(path) for _ in range(30)]
    with DaemonClient(path) as client:
        client.ask(STATUS, b"{}")
        assert client.acknowledged() < 1
        client.answered()
    for each in silent:
        each.hang_up()


def test_a_silent_connection_is_closed(path: str) -> None:
    with DaemonClient(path) as client:
        assert client.is_closed()


def test_the_peer_must_be_root(path: str, tmp_path: Path) -> None:
    """Even if the permissions of the socket allow others to connect."""
    os.chmod(path, 0o666)
    os.chmod(os.path.dirname(path), 0o755)
    program = (
        "import os, socket, sys\n"
        "connection = socket.socket(socket.AF_UNIX)\n"
        "os.chdir(os.path.dirname(sys.argv[1]))\n"  # the directories above are root's alone
        "os.setgid(65534); os.setuid(65534)\n"
        "connection.connect(os.path.basename(sys.argv[1]))\n"
        "connection.sendall(bytes.fromhex(sys.argv[2]))\n"
        "connection.shutdown(socket.SHUT_WR)\n"
        "while data := connection.recv(65536): os.write(1, data)\n"
    )
    data = request(STATUS, b"{}", netns=-1).hex()
    done = subprocess.run([sys.executable, "-I", "-c", program, path, data], capture_output=True, timeout=20)
    assert done.stdout[:1] == b"\1", done.stderr
    assert "permission denied: user 65534 is not root" in error(DaemonResponse(1, done.stdout[9:]), 107)
