"""Write permission per listener, the Unix socket's lifecycle, and the shutdown of listeners."""

import asyncio
import os
import socket
import stat
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from agent_api import unix_socket
from agent_api.application import agent_application, agent_runner
from agent_api.node_agent import NodeAgent
from agent_api.unix_socket import serve_unix
from contrail_config.embedded.store import SqliteStore
from contrail_service.errors import ListenError
from contrail_service.listen import ListenAddress
from contrail_service.serving import serve_tcp
from tests.agent_api.conftest import StartAgent
from tests.support.served_agent import DEADLINE, ServedAgent, port_of, until
from tests.support.virtual_machines import NODE, SAMPLE_VM, SAMPLE_VMI

WRITES = [
    ("POST", "/vm"),
    ("DELETE", f"/vm/{SAMPLE_VM}"),
    ("DELETE", f"/vm/{SAMPLE_VM}/{SAMPLE_VMI}"),
    ("POST", "/port"),
    ("DELETE", f"/port/{SAMPLE_VMI}"),
    ("POST", "/syncports"),
    ("PUT", f"/enable-port/{SAMPLE_VMI}"),
    ("PUT", f"/disable-port/{SAMPLE_VMI}"),
    ("POST", "/gateway"),
    ("DELETE", "/gateway"),
]


class TestWrites:
    """`tcp-writes: false`: any process on the host network can connect over TCP, and may only read."""

    async def test_are_rejected_over_tcp_if_tcp_writes_is_off(self, start_agent: StartAgent) -> None:
        served = await start_agent(tcp_writes=False)
        rejected = {"error": "tcp-writes is off: POST, PUT and DELETE are accepted only on the Unix socket"}
        async with served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI)) as answer:
            assert (answer.status, await answer.json()) == (403, rejected)
        for method, path in WRITES:
            async with served.tcp.request(method, path) as answer:
                assert (answer.status, await answer.json()) == (403, rejected), path
        assert not served.agent.is_plugged(SAMPLE_VM)

    async def test_are_accepted_on_the_unix_socket_regardless(self, start_agent: StartAgent) -> None:
        served = await start_agent(tcp_writes=False)
        async with served.unix.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI)) as answer:
            assert answer.status == 200
        assert served.agent.is_plugged(SAMPLE_VM)
        async with served.unix.delete(f"/vm/{SAMPLE_VM}") as answer:
            assert answer.status == 200
        assert not served.agent.is_plugged(SAMPLE_VM)

    async def test_without_a_route_are_unknown_requests_regardless(self, start_agent: StartAgent) -> None:
        served = await start_agent(tcp_writes=False)
        async with served.tcp.post("/ports", json={}) as answer:
            assert (answer.status, await answer.json()) == (404, {"error": "Unknown Request"})

    async def test_rejection_does_not_affect_reads(self, start_agent: StartAgent) -> None:
        served = await start_agent(tcp_writes=False)
        async with served.tcp.get("/vm-cfg/k8s__default__p1") as answer:
            assert answer.status == 404


async def test_further_routes_are_served_too(served: ServedAgent) -> None:
    for session in (served.tcp, served.unix):
        async with session.get("/healthz") as answer:
            assert answer.status == 200
            assert (await answer.json())["healthy"] is True


async def test_writes_before_the_ports_are_loaded_are_503(store: SqliteStore, tmp_path: Path) -> None:
    registry = CollectorRegistry()
    agent = NodeAgent(store=store, node=NODE, ports_dir=str(tmp_path), registry=registry)
    runner = agent_runner(agent_application(agent, accept_writes=True))
    await runner.setup()
    address = await serve_tcp(runner, ListenAddress("127.0.0.1", 0))
    reader, writer = await asyncio.open_connection(*address)
    async with asyncio.timeout(DEADLINE):
        writer.write(f"DELETE /vm/{SAMPLE_VM} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    await runner.cleanup()
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert answer.endswith(b'{"error":"ports: not loaded yet"}')


class TestUnixSocket:
    """Mode, replacement and ownership of the socket file."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "run" / "agent.sock"

    @pytest.fixture
    async def runner(self) -> AsyncIterator[web.AppRunner]:
        runner = web.AppRunner(web.Application())
        await runner.setup()
        yield runner
        await runner.cleanup()

    async def test_has_mode_0600_and_is_removed_with_its_listener(self, runner: web.AppRunner, path: Path) -> None:
        async with serve_unix(runner, str(path)):
            mode = os.stat(path).st_mode
            assert stat.S_ISSOCK(mode)
            assert stat.S_IMODE(mode) == 0o600
            assert [entry.name for entry in path.parent.iterdir()] == [path.name]
        assert list(path.parent.iterdir()) == []

    async def test_left_by_a_killed_process_is_replaced(self, runner: web.AppRunner, path: Path) -> None:
        path.parent.mkdir()
        for left in (path, path.with_name(f"{path.name}.new")):
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(str(left))
        async with serve_unix(runner, str(path)):
            _, writer = await asyncio.open_unix_connection(path)
            writer.close()
            await writer.wait_closed()

    async def test_of_another_listening_process_is_an_error_and_stays(self, runner: web.AppRunner, path: Path) -> None:
        path.parent.mkdir()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
            other.listen(1)
            before = os.stat(path)
            with pytest.raises(ListenError, match=f"cannot listen on {path}: another process listens on it"):
                await listen(runner, path)
            assert os.path.samestat(os.stat(path), before)

    async def test_with_a_full_backlog_is_an_error(
        self, runner: web.AppRunner, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(unix_socket, "_PROBE_TIMEOUT", 0.05)
        path.parent.mkdir()
        with socket.socket(socket.AF_UNIX) as other, socket.socket(socket.AF_UNIX) as client:
            other.bind(str(path))
            other.listen(0)
            client.connect(str(path))  # nobody accepts, and the backlog holds a single connection
            with pytest.raises(ListenError, match="another process listens on it"):
                await listen(runner, path)

    async def test_path_with_another_file_is_an_error(self, runner: web.AppRunner, path: Path) -> None:
        path.parent.mkdir()
        put_foreign(path)
        with pytest.raises(ListenError, match=f"cannot listen on {path}: the file exists and is not a socket"):
            await listen(runner, path)
        assert is_foreign(path)

    @pytest.mark.parametrize("name", ["x" * 200, "file/agent.sock"])
    async def test_path_that_is_impossible_is_an_error_that_names_it(
        self, runner: web.AppRunner, tmp_path: Path, name: str
    ) -> None:
        (tmp_path / "file").write_text("not a directory")
        with pytest.raises(ListenError, match=f"cannot listen on {tmp_path}/{name}: "):
            await listen(runner, tmp_path / name)

    async def test_of_a_later_listener_is_not_removed_by_an_earlier_one(
        self, runner: web.AppRunner, path: Path
    ) -> None:
        async with serve_unix(runner, str(path)):
            os.unlink(path)
            put_foreign(path)
        assert is_foreign(path)


async def test_a_closing_listener_answers_waiting_requests_and_stops_promptly(start_agent: StartAgent) -> None:
    served = await start_agent()
    runner = agent_runner(agent_application(served.agent, accept_writes=True))
    await runner.setup()
    address = await serve_tcp(runner, ListenAddress("127.0.0.1", 0))
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"GET /vm-cfg/k8s__default__p1?wait=60 HTTP/1.1\r\nHost: agent\r\n\r\n")
    async with asyncio.timeout(DEADLINE):
        await until(lambda: len(served.agent.virtual_machines.waiters))
        began = time.monotonic()
        await runner.cleanup()
        assert time.monotonic() - began < 2
        assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
    writer.close()
    await writer.wait_closed()


def put_foreign(path: Path) -> None:
    path.write_text("of another program")


def is_foreign(path: Path) -> bool:
    return path.read_text() == "of another program"


async def listen(runner: web.AppRunner, path: Path) -> None:
    async with serve_unix(runner, str(path)):
        pass
