"""Slow, silent and numerous clients: each is answered or closed, and others are served meanwhile."""

import asyncio
import contextlib
import os
import resource
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from contrail_config.embedded.store import SqliteStore
from contrail_service.connections import MAX_CONNECTIONS, connection_limit
from tests.agent_api.conftest import StartAgent
from tests.support.raw_http import DEADLINE, RawConnection, connected, exchanged, request
from tests.support.served_agent import ServedAgent, port_of, until
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI, make_virtual_machine

HEAD_TIMEOUT = 0.1  # seconds to receive a head and to read a response
INCOMPLETE_HEAD = b"GET /vm-cfg/k8s__default__p1 HTTP/1.1\r\nHost: age"
UNKNOWN_NAME = request("GET", "/vm-cfg/k8s__default__nobody")


def waiting_request(name: str = "k8s__default__nobody", seconds: str = "30") -> bytes:
    return request("GET", f"/vm-cfg/{name}?wait={seconds}")


@contextlib.asynccontextmanager
async def many(served: ServedAgent, number: int, *, data: bytes = b"") -> AsyncIterator[list[RawConnection]]:
    """Opens `number` connections that all send the same."""
    async with contextlib.AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(connected(served.address)) for _ in range(number)]
        for connection in connections:
            with contextlib.suppress(ConnectionError):  # beyond a limit it may be closed already
                await connection.send(data)
        yield connections


async def others_are_answered(served: ServedAgent, number: int = 20) -> None:
    """New clients plug, read and unplug."""
    async with asyncio.timeout(DEADLINE):
        for _ in range(number):
            for data in (
                request("GET", "/healthz"),
                request("DELETE", f"/vm/{SAMPLE_VM}"),
                request("POST", "/gateway", b"[]"),
            ):
                assert (await exchanged(served.address, data)).status == 200
        async with served.unix.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI)) as answer:
            assert answer.status == 200


class TestHeadTimeout:
    """Slowloris: an incomplete request head does not hold a connection."""

    @pytest.fixture
    async def impatient(self, start_agent: StartAgent) -> ServedAgent:
        return await start_agent(limits={"head_timeout": HEAD_TIMEOUT})

    async def test_an_incomplete_head_is_answered_with_408_and_closed(self, impatient: ServedAgent) -> None:
        async with connected(impatient.address) as connection:
            await connection.send(INCOMPLETE_HEAD)
            answer = await connection.answer()
            assert (answer.status, answer.error) == (408, f"request head: timed out after {HEAD_TIMEOUT:g} s")
            assert answer.headers["connection"] == "close"
            assert await connection.is_closed()

    async def test_single_bytes_do_not_extend_the_timeout(self, impatient: ServedAgent) -> None:
        async with connected(impatient.address) as connection:
            dripping = asyncio.create_task(drip(connection))
            assert (await connection.answer()).status == 408
            dripping.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await dripping

    async def test_a_silent_connection_is_closed_without_a_response(self, impatient: ServedAgent) -> None:
        async with connected(impatient.address) as connection:
            assert await connection.is_closed()

    async def test_an_incomplete_head_after_a_complete_request_times_out_too(self, impatient: ServedAgent) -> None:
        async with connected(impatient.address) as connection:
            await connection.send(UNKNOWN_NAME)
            assert (await connection.answer()).status == 404
            await connection.send(INCOMPLETE_HEAD)
            assert (await connection.answer()).status == 408

    async def test_a_connection_may_be_idle_longer_after_a_request(self, impatient: ServedAgent) -> None:
        async with connected(impatient.address) as connection:
            for _ in range(2):
                await connection.send(UNKNOWN_NAME)
                assert (await connection.answer()).status == 404
                await asyncio.sleep(2 * HEAD_TIMEOUT)

    async def test_a_waiting_request_is_not_affected(self, impatient: ServedAgent) -> None:
        answer = await exchanged(impatient.address, waiting_request(seconds="0.3"))
        assert (answer.status, answer.error) == (404, "{ Not Found }")

    async def test_a_head_in_many_pieces_is_answered_if_it_is_in_time(self, served: ServedAgent) -> None:
        async with connected(served.address) as connection:
            for byte in UNKNOWN_NAME:
                await connection.send(bytes([byte]))
                await asyncio.sleep(0)
            assert (await connection.answer()).status == 404

    async def test_other_clients_are_answered_meanwhile(self, served: ServedAgent) -> None:
        async with many(served, 200, data=INCOMPLETE_HEAD):
            await others_are_answered(served)


async def drip(connection: RawConnection) -> None:
    await connection.send(INCOMPLETE_HEAD)
    while True:
        await connection.send(b"x")
        await asyncio.sleep(HEAD_TIMEOUT / 10)


class TestUnreadResponses:
    """A client that sends requests and reads no responses."""

    async def test_close_the_connection_and_delay_no_other_client(self, start_agent: StartAgent) -> None:
        served = await start_agent(limits={"head_timeout": HEAD_TIMEOUT})
        with socket.socket() as client:
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, served.address)
            asking = asyncio.create_task(send_without_end(client))
            await others_are_answered(served)
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(asking, DEADLINE)

    async def test_of_which_little_is_left_close_the_connection_too(self, start_agent: StartAgent) -> None:
        served = await start_agent(limits={"head_timeout": HEAD_TIMEOUT})
        requests = await more_than_buffered(served)
        before = open_files()
        async with clients_that_read_nothing(served, 1, requests) as (client,):
            await until(lambda: open_files() == before + 2)  # that of the client, and that of the server
            await until(lambda: open_files() == before + 1)
            assert 0 < await read_all(client) < _MORE_THAN_BUFFERED - 32 * 1024

    async def test_that_are_read_in_time_are_all_complete(self, served: ServedAgent) -> None:
        asked = 300  # more than the buffers between hold
        async with connected(served.address) as connection:
            sending = asyncio.create_task(connection.send(asked * request("GET", "/openapi.json")))
            await others_are_answered(served)
            assert [(await connection.answer()).status for _ in range(asked)] == [200] * asked
            await sending


_MORE_THAN_BUFFERED = 280 * 1024
"""Bytes: a Unix socket takes 208 to 240 KiB by default, so less than 72 KiB are left in the process."""


async def more_than_buffered(served: ServedAgent) -> bytes:
    """Returns requests whose responses are about as many bytes."""
    async with served.unix.get("/openapi.json") as answer:
        return _MORE_THAN_BUFFERED // len(await answer.read()) * request("GET", "/openapi.json")


@contextlib.asynccontextmanager
async def clients_that_read_nothing(
    served: ServedAgent, number: int, requests: bytes
) -> AsyncIterator[list[socket.socket]]:
    """Have sent these requests on the Unix socket, and read a byte."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(number)]
        for client in clients:
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, str(served.socket))
            await asyncio.get_running_loop().sock_sendall(client, requests)
            await asyncio.get_running_loop().sock_recv(client, 1)  # the responses have begun
        yield clients


async def read_all(client: socket.socket) -> int:
    """Returns the number of bytes until the end."""
    total = 0
    with contextlib.suppress(ConnectionError):
        while received := await asyncio.get_running_loop().sock_recv(client, 65536):
            total += len(received)
    return total


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def send_without_end(client: socket.socket) -> None:
    while True:
        await asyncio.get_running_loop().sock_sendall(client, 100 * request("GET", "/openapi.json"))


class TestMaxConnections:
    """The oldest connections without a request are closed; if all have one, new ones get only health and readiness."""

    @pytest.fixture
    async def limited(self, start_agent: StartAgent) -> ServedAgent:
        return await start_agent(limits={"max_connections": 8})

    @pytest.mark.parametrize("data", [b"", INCOMPLETE_HEAD])
    async def test_the_oldest_connections_without_a_request_are_closed(self, limited: ServedAgent, data: bytes) -> None:
        async with many(limited, 8, data=data) as connections:
            await others_are_answered(limited)
            assert await connections[0].is_closed()

    async def test_connections_that_read_nothing_hold_no_more_files_than_others(self, limited: ServedAgent) -> None:
        requests = await more_than_buffered(limited)
        before = open_files()
        async with clients_that_read_nothing(limited, 30, requests):
            async with clients_that_read_nothing(limited, 1, request("GET", "/healthz")) as (last,):
                assert (await asyncio.get_running_loop().sock_recv(last, 65536)).startswith(b"TTP/1.1 200 ")
            await until(lambda: open_files() <= before + 30 + 8 + 2)

    async def test_connections_with_a_request_stay_open(self, limited: ServedAgent, store: SqliteStore) -> None:
        virtual_machine = make_virtual_machine()
        async with many(limited, 4, data=waiting_request(virtual_machine.name)) as waiting:
            await until(lambda: len(limited.agent.virtual_machines.waiters) == 4)
            async with many(limited, 20):
                await others_are_answered(limited)
            await store.put_virtual_machine(virtual_machine)
            assert [(await connection.answer()).status for connection in waiting] == [200] * 4

    async def test_if_all_have_a_request_a_further_one_is_answered_with_503(self, limited: ServedAgent) -> None:
        async with many(limited, 8, data=waiting_request()):
            await until(lambda: len(limited.agent.virtual_machines.waiters) == 8)
            async with connected(limited.address) as connection:
                await connection.send(UNKNOWN_NAME)
                answer = await connection.answer()
                assert (answer.status, answer.error) == (503, "too many connections: limit is 8, all busy; retry later")
                assert await connection.is_closed()
            async with limited.unix.get("/healthz") as beside:
                assert beside.status == 200
        await until(lambda: not len(limited.agent.virtual_machines.waiters))
        await others_are_answered(limited)

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            INCOMPLETE_HEAD,
            waiting_request(),
            request("GET", "/healthz") + waiting_request(),
            b"GET /healthz HTTP/1.1\r\nHost: agent\r\nContent-Length: 9\r\n\r\n",  # the body never comes
        ],
    )
    async def test_if_all_have_a_request_health_and_readiness_are_answered(
        self, limited: ServedAgent, data: bytes
    ) -> None:
        waiters = limited.agent.virtual_machines.waiters
        async with many(limited, 8, data=waiting_request()):
            await until(lambda: len(waiters) == 8)
            async with many(limited, 50, data=data):
                for path in ("/healthz", "/readyz"):
                    assert (await exchanged(limited.address, request("GET", path))).status == 200
            assert len(waiters) == 8

    async def test_a_connection_of_the_reserve_serves_one_request(self, limited: ServedAgent) -> None:
        async with many(limited, 8, data=waiting_request()):
            await until(lambda: len(limited.agent.virtual_machines.waiters) == 8)
            async with connected(limited.address) as connection:
                await connection.send(2 * request("GET", "/healthz"))
                assert (await connection.answer()).status == 200
                assert await connection.is_closed()

    def test_the_limit_leaves_files_for_other_purposes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for files, bound in ((1024, 256), (10**6, MAX_CONNECTIONS), (resource.RLIM_INFINITY, MAX_CONNECTIONS)):
            monkeypatch.setattr(resource, "getrlimit", lambda _what, files=files: (files, files))
            assert connection_limit() == bound


class TestAThousandWaitingRequests:
    """They wait without delaying other requests."""

    @pytest.fixture(autouse=True)
    def files(self) -> Iterator[None]:
        """Raises the file limit for both ends of the connections."""
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 8192), max(before[1], 8192)))
        yield
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    async def test_are_all_answered_and_further_ones_rejected(
        self, start_agent: StartAgent, store: SqliteStore
    ) -> None:
        served = await start_agent(max_waiting=1000)
        waiters = served.agent.virtual_machines.waiters
        virtual_machine = make_virtual_machine()
        async with (
            many(served, 500, data=waiting_request(virtual_machine.name)) as wanted,
            many(served, 500, data=waiting_request()) as unwanted,
        ):
            await until(lambda: len(waiters) == 1000)
            await others_are_answered(served)
            answer = await exchanged(served.address, waiting_request())
            assert (answer.status, answer.error) == (503, "too many waiting requests: limit is 1000; retry later")
            await store.put_virtual_machine(virtual_machine)
            statuses = [(await connection.answer()).status for connection in wanted]
            assert statuses == [200] * 500
            assert len(waiters) == len(unwanted)
        await until(lambda: len(waiters) == 0)
        assert waiters.names == set()
