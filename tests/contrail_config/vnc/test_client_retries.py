"""VncClient: retries, deadlines, several servers, and the number of connections."""

import asyncio
import socket

import pytest

from contrail_config.vnc.client import VncAccess, VncClient, connect
from contrail_config.vnc.errors import (
    VncError,
    VncExistsError,
    VncForbiddenError,
    VncRejectedError,
    VncUnavailableError,
)
from contrail_config.vnc.transport import MAX_CONNECTIONS
from tests.support.contrail_api.server import ContrailApi, serve_contrail_api
from tests.support.free_port import free_port

MACHINE = {"fq_name": ["a"]}


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (429, "slow down"),
        (500, "Too many pending updates to RabbitMQ: 4097"),
        (502, ""),
        (503, "No connection to zookeeper."),
        (503, "Api server is Initializing:DB Resync in progress"),
        (504, ""),
    ],
)
async def test_an_unavailable_server_is_asked_again(
    vnc: VncClient, double: ContrailApi, status: int, text: str
) -> None:
    double.faults.reject(status, text, times=2)
    await vnc.create("virtual-machine", MACHINE)
    assert double.requests == ["POST /virtual-machines"] * 3


@pytest.mark.parametrize("status", [400, 403, 405, 409, 412, 413, 500])
async def test_a_final_answer_is_not_repeated(vnc: VncClient, double: ContrailApi, status: int) -> None:
    double.faults.reject(status, "refused")
    with pytest.raises(VncError, match="refused"):
        await vnc.create("virtual-machine", MACHINE)
    assert len(double.requests) == 1


async def test_a_lost_request_is_repeated(vnc: VncClient, double: ContrailApi) -> None:
    double.faults.reset_before_write.append("POST /virtual-machines")
    await vnc.create("virtual-machine", MACHINE)


async def test_a_create_whose_answer_was_lost_exists(vnc: VncClient, double: ContrailApi) -> None:
    double.faults.reset_after_write.append("POST /virtual-machines")
    with pytest.raises(VncExistsError):
        await vnc.create("virtual-machine", MACHINE)


async def test_a_delete_whose_answer_was_lost_succeeds(vnc: VncClient, double: ContrailApi) -> None:
    uuid = await vnc.create("virtual-machine", MACHINE)
    double.faults.reset_after_write.append("DELETE /virtual-machine")
    await vnc.delete("virtual-machine", uuid)


async def test_a_server_that_does_not_answer_is_given_up(double: ContrailApi) -> None:
    double.faults.hung = True
    async with connect(VncAccess((double.url,)), deadline=0.2) as vnc:
        with pytest.raises(VncUnavailableError, match="timed out"):
            await vnc.create("virtual-machine", MACHINE)


async def test_a_server_that_is_away_is_named() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    async with connect(VncAccess((url,)), deadline=0.2) as vnc:
        with pytest.raises(VncUnavailableError, match=f"GET / at {url}: cannot connect to 127.0.0.1"):
            await vnc.has_watch()


async def test_the_next_server_is_used_until_it_fails_too(double: ContrailApi) -> None:
    async with (
        serve_contrail_api(double.database) as other,
        connect(VncAccess((double.url, other.url)), deadline=10) as vnc,
    ):
        await vnc.list_all("domain", fields=["annotations"])
        assert other.requests == []
        await double.stop()
        for _ in range(3):
            await vnc.list_all("domain", fields=["annotations"])
        assert len(other.requests) == 3
        await double.start()
        await other.stop()
        await vnc.list_all("domain", fields=["annotations"])


async def test_a_starting_server_is_left_for_the_next(double: ContrailApi) -> None:
    double.faults.reject(503, "Api server is Initializing:DB Resync in progress", times=100)
    async with (
        serve_contrail_api(double.database) as other,
        connect(VncAccess((double.url, other.url)), deadline=10) as vnc,
    ):
        await vnc.create("virtual-machine", MACHINE)
        assert len(double.requests) == 1
        assert len(other.requests) == 1


async def test_there_are_never_more_connections_than_the_limit(vnc: VncClient, double: ContrailApi) -> None:
    double.faults.latency = 0.01
    await asyncio.gather(*(vnc.has_watch() for _ in range(3 * MAX_CONNECTIONS)))
    assert double.connections.most <= MAX_CONNECTIONS


async def test_a_write_that_is_not_permitted_is_not_sent(double: ContrailApi) -> None:
    def refuse() -> float:
        raise VncForbiddenError("not the leader")

    async with connect(VncAccess((double.url,)), before_write=refuse) as vnc:
        with pytest.raises(VncForbiddenError, match="not the leader"):
            await vnc.create("virtual-machine", MACHINE)
        assert await vnc.list_all("virtual-machine", fields=["annotations"]) == []


async def test_a_body_above_the_limit_is_refused(vnc: VncClient) -> None:
    with pytest.raises(VncRejectedError, match="are more than the 1024000 that the server accepts"):
        await vnc.create("virtual-machine", {**MACHINE, "display_name": "x" * 1_100_000})


async def test_the_head_of_a_response_is_acknowledged_before_its_body(monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[tuple[int, int]] = []
    acknowledged = asyncio.Event()
    set_option = socket.socket.setsockopt

    def record(opened: socket.socket, level: int, option: int, value: int) -> None:
        set_option(opened, level, option, value)
        options.append((level, option))
        if option == socket.TCP_QUICKACK and level == socket.IPPROTO_TCP:
            acknowledged.set()

    monkeypatch.setattr(socket.socket, "setsockopt", record)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n")
        await acknowledged.wait()
        writer.write(b'{"links":[]}')
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1")
    async with server, connect(VncAccess((f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}",))) as vnc:
        assert await vnc.has_watch() is False
    assert (socket.IPPROTO_TCP, socket.TCP_QUICKACK) in options
