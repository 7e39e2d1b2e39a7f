"""Request priority: low-priority writes are sent one at a time while many requests are in flight."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.request_priority import BUSY, RequestPriority
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.following import eventually


class Crowd:
    """Leisurely requests, by their numbers: those that are under way, in the order in which their turn came."""

    def __init__(self, turns: RequestPriority) -> None:
        self._turns = turns
        self.under_way: list[int] = []
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def ask(self, *numbers: int) -> None:
        for number in numbers:
            self._tasks[number] = asyncio.create_task(self._ask(number))
        await settle()

    async def end(self, number: int) -> None:
        """It is answered if it is under way, and given up otherwise."""
        task = self._tasks.pop(number)
        task.cancel()
        await asyncio.wait([task])
        await settle()

    async def end_all(self) -> None:
        for number in list(self._tasks):
            await self.end(number)

    async def _ask(self, number: int) -> None:
        async with self._turns.low():
            self.under_way.append(number)
            try:
                await asyncio.Event().wait()
            finally:
                self.under_way.remove(number)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def turns() -> RequestPriority:
    return RequestPriority()


@pytest.fixture
async def crowd(turns: RequestPriority) -> AsyncIterator[Crowd]:
    crowd = Crowd(turns)
    yield crowd
    await crowd.end_all()


async def test_several_are_in_flight_while_nothing_else_is(crowd: Crowd) -> None:
    await crowd.ask(*range(BUSY + 2))
    assert crowd.under_way == list(range(BUSY))


async def test_requests_are_admitted_in_order(crowd: Crowd) -> None:
    await crowd.ask(*range(BUSY + 2))
    await crowd.end(1)
    assert crowd.under_way[-1] == BUSY
    await crowd.end(0)
    assert crowd.under_way[-1] == BUSY + 1


async def test_a_cancelled_request_is_not_admitted(crowd: Crowd) -> None:
    await crowd.ask(*range(BUSY + 2))
    await crowd.end(BUSY)
    await crowd.end(0)
    assert crowd.under_way[-1] == BUSY + 1
    await crowd.end_all()
    await crowd.ask(*range(BUSY + 1))
    assert len(crowd.under_way) == BUSY


@pytest.mark.parametrize("urgent", [BUSY - 1, BUSY, 10 * BUSY])
async def test_only_one_is_in_flight_while_many_of_high_priority_are(
    turns: RequestPriority, crowd: Crowd, urgent: int
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(urgent):
            await stack.enter_async_context(turns.high())
        await crowd.ask(0, 1, 2)
        assert crowd.under_way == [0]
        await crowd.end(0)
        assert crowd.under_way == [1]
    await settle()
    assert crowd.under_way == [1, 2]


async def test_high_priority_never_waits(turns: RequestPriority, crowd: Crowd) -> None:
    await crowd.ask(*range(10 * BUSY))
    async with asyncio.timeout(1), turns.high(), turns.high():
        pass


async def test_low_priority_writes_of_a_client_wait_and_its_reads_do_not(
    client: KubeClient, server: FakeApiServer
) -> None:
    low_priority = client.low_priority()
    server.faults.hung = True
    urgent = [asyncio.create_task(client.list_all(CONFIG_MAPS)) for _ in range(BUSY)]
    await eventually(lambda: len(server.requests) >= BUSY)
    body = {"metadata": {"name": "one"}}
    writes = [asyncio.create_task(low_priority.create(CONFIG_MAPS, body, namespace="default")) for _ in range(3)]
    read = asyncio.create_task(low_priority.list_all(CONFIG_MAPS))
    await eventually(lambda: len(server.requests) >= BUSY + 2)
    await asyncio.sleep(0.1)
    assert server.requests[BUSY:].count("create configmaps") == 1
    tasks = (*urgent, *writes, read)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
