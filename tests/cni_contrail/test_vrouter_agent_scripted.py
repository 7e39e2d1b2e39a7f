"""The scripted Contrail vrouter agent, which must not be more helpful than the original."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.scripted_agents import ScriptedAgent, Vmi, make_vmis

pytestmark = pytest.mark.usefixtures("vrouter_agent")


@pytest.fixture
def vmis(vrouter_agent: ScriptedAgent) -> list[Vmi]:
    vmis = make_vmis(2)
    vrouter_agent.serve("k8s__demo__p", vmis)
    return vmis


@pytest.fixture
def connection(vrouter_agent: ScriptedAgent) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(vrouter_agent.socket_path)
        yield connection


def response(connection: socket.socket) -> bytes:
    """Returns one whole response."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1)
    length = int(data.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(data.partition(b"\r\n\r\n")[2]) < length:
        data += connection.recv(65536)
    return data


def ask(connection: socket.socket, method: str, path: str, body: object = None, header: str = "") -> tuple[int, Any]:
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{header}Content-Length: {len(content)}\r\n\r\n"
    connection.sendall(head.encode() + content)
    answer = response(connection)
    return int(answer.split()[1]), json.loads(answer.partition(b"\r\n\r\n")[2])


def plug(connection: socket.socket, vmi: Vmi, device: str) -> None:
    port = {"vmi-uuid": vmi.uuid, "vm-uuid": vmi.vm_uuid, "host-ifname": device}
    assert ask(connection, "POST", "/vm", port)[0] == 200


def test_the_ports_of_a_vm_are_served_all_or_not_at_all(connection: socket.socket, vmis: list[Vmi]) -> None:
    vm = f"/vm/{vmis[0].vm_uuid}"
    plug(connection, vmis[0], "tap0")
    assert ask(connection, "GET", vm)[0] == 404
    assert ask(connection, "GET", f"{vm}/{vmis[0].uuid}")[0] == 200
    assert ask(connection, "GET", f"{vm}/{vmis[1].uuid}")[0] == 404
    plug(connection, vmis[1], "tap1")
    assert ask(connection, "GET", vm)[0] == 200


def test_a_plugged_port_keeps_its_device(connection: socket.socket, vmis: list[Vmi]) -> None:
    path = f"/vm/{vmis[0].vm_uuid}/{vmis[0].uuid}"

    def device() -> object:
        _, ports = ask(connection, "GET", path)
        return ports[0]["system-name"]

    plug(connection, vmis[0], "tap0")
    plug(connection, vmis[0], "tap1")
    assert device() == "tap0"
    ask(connection, "DELETE", f"/vm/{vmis[0].vm_uuid}")
    plug(connection, vmis[0], "tap1")
    assert device() == "tap1"


def test_connection_close_is_ignored(connection: socket.socket) -> None:
    for _ in range(2):
        assert ask(connection, "GET", "/vm-cfg/x", header="Connection: close\r\n")[0] == 404


def test_a_pipelined_request_is_lost(connection: socket.socket, vrouter_agent: ScriptedAgent) -> None:
    connection.sendall(b"GET /vm-cfg/a HTTP/1.1\r\n\r\nGET /vm-cfg/b HTTP/1.1\r\n\r\n")
    response(connection)
    ask(connection, "GET", "/vm-cfg/c")
    assert [seen.path for seen in vrouter_agent.requests] == ["/vm-cfg/a", "/vm-cfg/c"]


def test_a_malformed_request_is_never_answered(connection: socket.socket) -> None:
    connection.sendall(b"what is this\r\n\r\n")
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b""
