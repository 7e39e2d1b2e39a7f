"""Slow clients, silent ones, and many: each gets its answer or its end, and all others are answered meanwhile."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from agent_api.connections import MAX_CONNECTIONS, connection_limit
from contrail_config.embedded.store import SqliteStore
from tests.agent_api.conftest import StartAgent
from tests.support.agent import ServedAgent, port_of, until
from tests.support.machines import SAMPLE_VM, SAMPLE_VMI, make_machine
from tests.support.raw_http import DEADLINE, RawConnection, connected, exchanged, request

SOON = 0.1  # seconds in which a head must come and an answer must be read
HALF_A_HEAD = b"GET /vm-cfg/k8s__default__p1 HTTP/1.1\r\nHost: age"
NOT_THERE = request("GET", "/vm-cfg/k8s__default__nobody")


def waits(name: str = "k8s__default__nobody", seconds: str = "30") -> bytes:
    return request("GET", f"/vm-cfg/{name}?wait={seconds}")


@contextlib.asynccontextmanager
async def many(served: ServedAgent, number: int, *, say: bytes = b"") -> AsyncIterator[list[RawConnection]]:
    """So many connections, each of which says the same."""
    async with contextlib.AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(connected(served.address)) for _ in range(number)]
        for connection in connections:
            await connection.send(say)
        yield connections


async def others_are_answered(served: ServedAgent, number: int = 20) -> None:
    """New clients plug, read and free."""
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


class TestSlowHeads:
    """Slow-loris: who does not say what he wants is not waited for."""

    @pytest.fixture
    async def hurried(self, start_agent: StartAgent) -> ServedAgent:
        return await start_agent(limits={"head_timeout": SOON})

    async def test_half_a_head_is_answered_with_408_and_the_end(self, hurried: ServedAgent) -> None:
        async with connected(hurried.address) as connection:
            await connection.send(HALF_A_HEAD)
            answer = await connection.answer()
            assert (answer.status, answer.error) == (408, f"request head: timed out after {SOON:g} s")
            assert answer.headers["connection"] == "close"
            assert await connection.is_closed()

    async def test_who_sends_a_byte_now_and_then_gains_nothing(self, hurried: ServedAgent) -> None:
        async with connected(hurried.address) as connection:
            dripping = asyncio.create_task(drip(connection))
            assert (await connection.answer()).status == 408
            dripping.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await dripping

    async def test_who_says_nothing_at_all_is_left_without_a_word(self, hurried: ServedAgent) -> None:
        async with connected(hurried.address) as connection:
            assert await connection.is_closed()

    async def test_half_a_head_after_a_whole_request_is_no_better(self, hurried: ServedAgent) -> None:
        async with connected(hurried.address) as connection:
            await connection.send(NOT_THERE)
            assert (await connection.answer()).status == 404
            await connection.send(HALF_A_HEAD)
            assert (await connection.answer()).status == 408

    async def test_who_has_asked_before_may_keep_silent_longer(self, hurried: ServedAgent) -> None:
        async with connected(hurried.address) as connection:
            for _ in range(2):
                await connection.send(NOT_THERE)
                assert (await connection.answer()).status == 404
                await asyncio.sleep(2 * SOON)

    async def test_who_waits_for_a_list_is_not_hurried(self, hurried: ServedAgent) -> None:
        answer = await exchanged(hurried.address, waits(seconds="0.3"))
        assert (answer.status, answer.error) == (404, "{ Not Found }")

    async def test_a_head_in_many_pieces_that_is_whole_in_time_is_answered(self, served: ServedAgent) -> None:
        async with connected(served.address) as connection:
            for byte in NOT_THERE:
                await connection.send(bytes([byte]))
                await asyncio.sleep(0)
            assert (await connection.answer()).status == 404

    async def test_others_are_answered_meanwhile(self, served: ServedAgent) -> None:
        async with many(served, 200, say=HALF_A_HEAD):
            await others_are_answered(served)


async def drip(connection: RawConnection) -> None:
    await connection.send(HALF_A_HEAD)
    while True:
        await connection.send(b"x")
        await asyncio.sleep(SOON / 10)


class TestUnreadAnswers:
    """A client that asks and asks and reads nothing."""

    async def test_end_the_connection_and_nobody_waits_for_them(self, start_agent: StartAgent) -> None:
        served = await start_agent(limits={"head_timeout": SOON})
        with socket.socket() as client:
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, served.address)
            asking = asyncio.create_task(ask_for_ever(client))
            await others_are_answered(served)
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(asking, DEADLINE)

    async def test_that_are_read_in_time_after_all_are_all_there(self, served: ServedAgent) -> None:
        asked = 300  # more than the buffers between hold
        async with connected(served.address) as connection:
            sending = asyncio.create_task(connection.send(asked * request("GET", "/openapi.json")))
            await others_are_answered(served)
            assert [(await connection.answer()).status for _ in range(asked)] == [200] * asked
            await sending


async def ask_for_ever(client: socket.socket) -> None:
    while True:
        await asyncio.get_running_loop().sock_sendall(client, 100 * request("GET", "/openapi.json"))


class TestMoreConnectionsThanAreBorne:
    """The oldest without a request make room; if all have one, the newest is told so."""

    @pytest.fixture
    async def narrow(self, start_agent: StartAgent) -> ServedAgent:
        return await start_agent(limits={"max_connections": 8})

    @pytest.mark.parametrize("say", [b"", HALF_A_HEAD])
    async def test_the_oldest_without_a_request_are_closed(self, narrow: ServedAgent, say: bytes) -> None:
        async with many(narrow, 8, say=say) as connections:
            await others_are_answered(narrow)
            assert await connections[0].is_closed()

    async def test_those_with_a_request_keep_it(self, narrow: ServedAgent, store: SqliteStore) -> None:
        machine = make_machine()
        async with many(narrow, 4, say=waits(machine.name)) as waiting:
            await until(lambda: len(narrow.agent.virtual_machines.waiters) == 4)
            async with many(narrow, 20):
                await others_are_answered(narrow)
            await store.put_virtual_machine(machine)
            assert [(await connection.answer()).status for connection in waiting] == [200] * 4

    async def test_if_all_have_a_request_the_newest_is_answered_with_503(self, narrow: ServedAgent) -> None:
        async with many(narrow, 8, say=waits()):
            await until(lambda: len(narrow.agent.virtual_machines.waiters) == 8)
            async with connected(narrow.address) as connection:
                answer = await connection.answer()
                assert (answer.status, answer.error) == (503, "too many connections: limit is 8, all busy; retry later")
                assert await connection.is_closed()
            async with narrow.unix.get("/healthz") as beside:
                assert beside.status == 200
        await until(lambda: not len(narrow.agent.virtual_machines.waiters))
        await others_are_answered(narrow)

    def test_the_bound_leaves_the_process_files_for_other_things(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for files, bound in ((1024, 256), (10**6, MAX_CONNECTIONS), (resource.RLIM_INFINITY, MAX_CONNECTIONS)):
            monkeypatch.setattr(resource, "getrlimit", lambda _what, files=files: (files, files))
            assert connection_limit() == bound


class TestAThousandWaitingRequests:
    """They wait, and nobody else waits for them."""

    @pytest.fixture(autouse=True)
    def files(self) -> Iterator[None]:
        """Lets this process open as many files as both ends of the connections take."""
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 8192), max(before[1], 8192)))
        yield
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    async def test_are_all_answered_when_what_they_wait_for_comes(
        self, start_agent: StartAgent, store: SqliteStore
    ) -> None:
        served = await start_agent(max_waiting=1000)
        waiters = served.agent.virtual_machines.waiters
        machine = make_machine()
        async with many(served, 500, say=waits(machine.name)) as wanted, many(served, 500, say=waits()) as unwanted:
            await until(lambda: len(waiters) == 1000)
            await others_are_answered(served)
            answer = await exchanged(served.address, waits())
            assert (answer.status, answer.error) == (503, "too many waiting requests: limit is 1000; retry later")
            await store.put_virtual_machine(machine)
            statuses = [(await connection.answer()).status for connection in wanted]
            assert statuses == [200] * 500
            assert len(waiters) == len(unwanted)
        await until(lambda: len(waiters) == 0)
        assert waiters.names == set()
