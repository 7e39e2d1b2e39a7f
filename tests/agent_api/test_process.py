"""`contrail-agent` with a cluster: starts in any state of the cluster, reports what it waits for, stops in time."""

import asyncio
import http.client
import socket
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from contrail_config.kube.client import connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.store import KubernetesStore
from tests.support.cluster_processes import AgentProcess, plain_kubeconfig
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.free_port import free_port
from tests.support.virtual_machines import NODE, make_virtual_machine

SIGTERM_GRACE = 5.0


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """A server whose address is known but which is not started yet."""
    server = FakeApiServer()
    server.port = free_port()
    yield server
    await server.stop()


@pytest.fixture
def kubeconfig(server: FakeApiServer, tmp_path: Path) -> Path:
    return plain_kubeconfig(tmp_path, server.url)


@pytest.fixture
def agent(kubeconfig: Path, tmp_path: Path) -> Iterator[AgentProcess]:
    yield from killed_in_the_end(AgentProcess(tmp_path / "agent", kubeconfig, node=NODE, tcp_writes=False))


def killed_in_the_end(agent: AgentProcess) -> Iterator[AgentProcess]:
    yield agent
    if agent.process is not None and agent.process.poll() is None:
        agent.kill()


async def put_virtual_machine(server: FakeApiServer, name: str) -> None:
    """Writes a VirtualMachine of the agent's node, as a manager does."""
    async with connect(ClientConfig(server.url)) as client:
        await ensure_crds(client)
        store = KubernetesStore(client)
        await store.put_virtual_machine(make_virtual_machine(pod=name))
        await store.close()


async def until_readiness_names(agent: AgentProcess, text: str) -> None:
    def named() -> bool:
        status, answer = agent.ask("/readyz")
        return status == 503 and text in str(answer["reasons"])

    await asyncio.to_thread(agent.wait_until, named, what=f"naming {text!r}")


async def test_it_waits_for_the_server_then_for_the_crd_and_then_serves(
    agent: AgentProcess, server: FakeApiServer
) -> None:
    agent.launch()
    await until_readiness_names(agent, f"127.0.0.1:{server.port}")
    assert (await asyncio.to_thread(agent.get, "/healthz"))["healthy"]
    await server.start()
    await until_readiness_names(agent, "virtualmachines: 404")
    await put_virtual_machine(server, "web")
    await asyncio.to_thread(agent.wait_until_ready)
    assert await asyncio.to_thread(agent.interfaces, "default", "web")


async def test_it_serves_known_virtual_machines_while_the_server_is_unreachable(
    agent: AgentProcess, server: FakeApiServer
) -> None:
    await server.start()
    await put_virtual_machine(server, "web")
    await asyncio.to_thread(agent.start)
    await server.stop()
    await until_readiness_names(agent, "virtualmachines")
    assert await asyncio.to_thread(agent.interfaces, "default", "web")


async def test_writes_are_accepted_as_configured(agent: AgentProcess, server: FakeApiServer) -> None:
    await server.start()
    await put_virtual_machine(server, "web")
    await asyncio.to_thread(agent.start)
    assert await asyncio.to_thread(_delete, http.client.HTTPConnection(agent.listen, timeout=5)) == 403
    assert agent.socket.stat().st_mode & 0o777 == 0o600
    assert await asyncio.to_thread(_delete, _over(agent.socket)) == 200


def _over(path: Path) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("localhost", timeout=5)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    return connection


def _delete(connection: http.client.HTTPConnection) -> int:
    connection.request("DELETE", "/vm/aaaaaaaa-0000-4000-8000-000000000001")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


@pytest.mark.parametrize("fault", ["away", "hung"])
async def test_it_stops_in_time_whatever_the_server_does(
    agent: AgentProcess, server: FakeApiServer, fault: str
) -> None:
    await server.start()
    await put_virtual_machine(server, "web")
    await asyncio.to_thread(agent.start)
    if fault == "away":
        await server.stop()
    else:
        server.faults.hung = True
        server.cut_watches()
    begun = time.monotonic()
    assert await asyncio.to_thread(agent.stop) == 0
    assert time.monotonic() - begun < SIGTERM_GRACE
    assert "Warning: " not in agent.log.read_text()


async def test_a_second_agent_on_the_same_socket_is_rejected(
    agent: AgentProcess, server: FakeApiServer, kubeconfig: Path, tmp_path: Path
) -> None:
    await server.start()
    await put_virtual_machine(server, "web")
    await asyncio.to_thread(agent.start)
    second = AgentProcess(tmp_path / "second", kubeconfig, node=NODE, socket=str(agent.socket))
    message = f"cannot listen on {agent.socket}: another process listens on it"
    assert await asyncio.to_thread(_start_error, second) == message


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"listen": "192.0.2.1:9091"}, "cannot listen on 192.0.2.1:9091"),
        ({"metrics_listen": "192.0.2.1:9092"}, "cannot listen on 192.0.2.1:9092"),
        ({"ports_dir": "/dev/null/ports"}, "ports-dir: port file /dev/null/ports"),
        ({"ports_dir": "/etc/passwd"}, "ports-dir: port file /etc/passwd/gateway/: Not a directory"),
    ],
)
async def test_the_reason_of_a_failed_start_is_printed(
    kubeconfig: Path, tmp_path: Path, settings: dict[str, Any], text: str
) -> None:
    agent = AgentProcess(tmp_path / "agent", kubeconfig, node=NODE, **settings)
    assert text in await asyncio.to_thread(_start_error, agent)


def _start_error(agent: AgentProcess) -> str:
    agent.launch()
    assert agent.ended() == 2
    last = agent.log.read_text().splitlines()[-1]
    assert last.startswith("contrail-agent: ")
    return last.removeprefix("contrail-agent: ")
