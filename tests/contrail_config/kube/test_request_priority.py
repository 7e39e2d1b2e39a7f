"""Request priority: low-priority writes are sent one at a time while many requests are in flight."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.request_priority import BUSY, RequestPriority
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually


class Requests:
    """Low-priority requests by number; `in_flight` in the order of their admission."""

    def __init__(self, priority: RequestPriority) -> None:
        self._priority = priority
        self.in_flight: list[int] = []
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def send(self, *numbers: int) -> None:
        for number in numbers:
            self._tasks[number] = asyncio.create_task(self._send(number))
        await let_tasks_run()

    async def end(self, number: int) -> None:
        """Ends a request that is in flight, or cancels one that waits."""
        task = self._tasks.pop(number)
        task.cancel()
        await asyncio.wait([task])
        await let_tasks_run()

    async def end_all(self) -> None:
        for number in list(self._tasks):
            await self.end(number)

    async def _send(self, number: int) -> None:
        async with self._priority.low():
            self.in_flight.append(number)
            try:
                await asyncio.Event().wait()
            finally:
                self.in_flight.remove(number)


async def let_tasks_run() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def priority() -> RequestPriority:
    return RequestPriority()


@pytest.fixture
async def requests(priority: RequestPriority) -> AsyncIterator[Requests]:
    requests = Requests(priority)
    yield requests
    await requests.end_all()


async def test_several_are_in_flight_while_nothing_else_is(requests: Requests) -> None:
    await requests.send(*range(BUSY + 2))
    assert requests.in_flight == list(range(BUSY))


async def test_requests_are_admitted_in_order(requests: Requests) -> None:
    await requests.send(*range(BUSY + 2))
    await requests.end(1)
    assert requests.in_flight[-1] == BUSY
    await requests.end(0)
    assert requests.in_flight[-1] == BUSY + 1


async def test_a_cancelled_request_is_not_admitted(requests: Requests) -> None:
    await requests.send(*range(BUSY + 2))
    await requests.end(BUSY)
    await requests.end(0)
    assert requests.in_flight[-1] == BUSY + 1
    await requests.end_all()
    await requests.send(*range(BUSY + 1))
    assert len(requests.in_flight) == BUSY


@pytest.mark.parametrize("high_priority", [BUSY - 1, BUSY, 10 * BUSY])
async def test_only_one_is_in_flight_while_many_of_high_priority_are(
    priority: RequestPriority, requests: Requests, high_priority: int
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(high_priority):
            await stack.enter_async_context(priority.high())
        await requests.send(0, 1, 2)
        assert requests.in_flight == [0]
        await requests.end(0)
        assert requests.in_flight == [1]
    await let_tasks_run()
    assert requests.in_flight == [1, 2]


async def test_high_priority_never_waits(priority: RequestPriority, requests: Requests) -> None:
    await requests.send(*range(10 * BUSY))
    async with asyncio.timeout(1), priority.high(), priority.high():
        pass


async def test_low_priority_writes_of_a_client_wait_and_its_reads_do_not(
    client: KubeClient, server: FakeApiServer
) -> None:
    low_priority = client.low_priority()
    server.faults.hung = True
    high_priority = [asyncio.create_task(client.list_all(CONFIG_MAPS)) for _ in range(BUSY)]
    await eventually(lambda: len(server.requests) >= BUSY)
    body = {"metadata": {"name": "one"}}
    writes = [asyncio.create_task(low_priority.create(CONFIG_MAPS, body, namespace="default")) for _ in range(3)]
    read = asyncio.create_task(low_priority.list_all(CONFIG_MAPS))
    await eventually(lambda: len(server.requests) >= BUSY + 2)
    await asyncio.sleep(0.1)
    assert server.requests[BUSY:].count("create configmaps") == 1
    tasks = (*high_priority, *writes, read)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
