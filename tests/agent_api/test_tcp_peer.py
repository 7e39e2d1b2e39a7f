"""Writes over TCP: only from processes of root, as far as the kernel attributes the peer's socket."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from agent_api.tcp_peer import is_foreign_user
from tests.agent_api.conftest import StartAgent
from tests.support.raw_http import exchanged, request
from tests.support.served_agent import port_of
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI

NOBODY = 65534
POST = request("POST", "/vm", json.dumps(port_of(SAMPLE_VM, SAMPLE_VMI)).encode())
CLIENT = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10) as client:
    client.sendall(sys.stdin.buffer.read())
    sys.stdout.buffer.write(client.recv(65536))
"""


def _exchanged_as(user: int, address: tuple[str, int], data: bytes) -> bytes:
    """Sends bytes from a process of the user and returns the response."""
    command = [os.path.realpath(sys.executable), "-I", "-c", CLIENT, address[0], str(address[1])]
    process = subprocess.run(
        command, input=data, capture_output=True, user=user, group=user, timeout=20, cwd="/", check=True
    )
    return process.stdout


async def test_a_write_of_a_process_of_another_user_is_rejected(start_agent: StartAgent) -> None:
    served = await start_agent(root_peers_only=True)
    answer = await asyncio.to_thread(_exchanged_as, NOBODY, served.address, POST)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert answer.endswith(b'{"error":"POST, PUT and DELETE over TCP are accepted only from processes of root"}')
    assert not served.agent.is_plugged(SAMPLE_VM)
    read = await asyncio.to_thread(_exchanged_as, NOBODY, served.address, request("GET", "/gateway"))
    assert read.startswith(b"HTTP/1.1 200 ")


async def test_a_write_of_a_process_of_root_is_accepted(start_agent: StartAgent) -> None:
    served = await start_agent(root_peers_only=True)
    assert (await asyncio.to_thread(_exchanged_as, 0, served.address, POST)).startswith(b"HTTP/1.1 200 ")
    assert served.agent.is_plugged(SAMPLE_VM)


async def test_a_write_in_the_plugins_form_is_checked_too(start_agent: StartAgent) -> None:
    served = await start_agent(root_peers_only=True)
    body = json.dumps(port_of(SAMPLE_VM, SAMPLE_VMI)).encode()
    head = f"POST /vm HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    answer = await asyncio.to_thread(_exchanged_as, NOBODY, served.address, head.encode() + body)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert (await exchanged(served.address, head.encode() + body)).status == 200


LISTENERS = [
    (socket.AF_INET, "127.0.0.1", socket.AF_INET, "127.0.0.1"),
    (socket.AF_INET6, "::1", socket.AF_INET6, "::1"),
    (socket.AF_INET6, "::", socket.AF_INET, "127.0.0.1"),
    (socket.AF_INET, "127.0.0.1", socket.AF_INET6, "::ffff:127.0.0.1"),
]


class TestAttribution:
    """The user of a peer, by the two addresses of the connection."""

    @pytest.fixture(params=LISTENERS, ids=lambda listener: f"{listener[1]} from {listener[3]}")
    def ends(self, request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
        """Client and server side of a connection."""
        family, host, client_family, target = request.param
        with socket.socket(family) as listener, socket.socket(client_family) as client:
            listener.bind((host, 0))
            listener.listen()
            client.connect((target, listener.getsockname()[1]))
            accepted, _ = listener.accept()
            with accepted:
                yield client, accepted

    def test_root_is_not_foreign(self, ends: tuple[socket.socket, socket.socket]) -> None:
        _, accepted = ends
        assert not is_foreign_user(accepted.getpeername(), accepted.getsockname())

    def test_another_user_is_foreign(self, ends: tuple[socket.socket, socket.socket]) -> None:
        client, accepted = ends
        os.fchown(client.fileno(), NOBODY, NOBODY)
        assert is_foreign_user(accepted.getpeername(), accepted.getsockname())

    def test_a_peer_that_has_closed_is_foreign(self, ends: tuple[socket.socket, socket.socket]) -> None:
        client, accepted = ends
        os.fchown(client.fileno(), NOBODY, NOBODY)
        peer = accepted.getpeername()
        client.close()  # the kernel goes on to list the connection, as one of root
        assert is_foreign_user(peer, accepted.getsockname())

    def test_a_local_peer_that_is_not_listed_is_foreign(self) -> None:
        assert is_foreign_user(("127.0.0.1", 1), ("127.0.0.1", 2))
        assert is_foreign_user(("::1", 1), ("::1", 2))

    def test_a_peer_on_another_host_cannot_be_attributed(self) -> None:
        assert not is_foreign_user(("192.0.2.1", 1), ("192.0.2.2", 2))
        assert not is_foreign_user(("2001:db8::1", 1), ("2001:db8::2", 2))
