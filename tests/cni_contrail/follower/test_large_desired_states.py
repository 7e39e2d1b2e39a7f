"""A desired state with tens of thousands of pods on other nodes is read as a whole."""

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from cni_contrail.agent.http import Endpoint
from cni_contrail.follower.agent import next_desired_state

ENDPOINTS = 60_000


@pytest.fixture
def endpoint(agent_socket: str) -> Iterator[Endpoint]:
    """An agent that answers one request with the state."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(agent_socket)
        listener.listen()
        thread = threading.Thread(target=_answer, args=(listener,))
        thread.start()
        yield Endpoint(agent_socket, "", 0)
        thread.join()


def _answer(listener: socket.socket) -> None:
    body = json.dumps(_state()).encode()
    connection, _ = listener.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


def _state() -> object:
    remotes = [
        {
            "mac": f"02:00:00:{each >> 16:02x}:{each >> 8 & 255:02x}:{each & 255:02x}",
            "addresses": [f"10.{each >> 16}.{each >> 8 & 255}.{each & 255}", f"fd00::{each:x}"],
            "tunnel": "192.0.2.200",
        }
        for each in range(1, ENDPOINTS + 1)
    ]
    network = {
        "vni": 7, "mtu": 1400, "gateways": [], "snat": False, "forwarding": False, "ports": [], "remotes": remotes,
    }  # fmt: skip
    tunnel = {"addresses": ["192.0.2.1"], "port": 4789}
    return {"version": "v1", "networks": [network], "routed": [], "masquerade": None, "tunnel": tunnel}


def test_all_of_it_is_read(endpoint: Endpoint) -> None:
    state = next_desired_state(endpoint, "test", "", wait=0)
    assert state is not None
    assert len(state.networks[0].remotes) == ENDPOINTS
