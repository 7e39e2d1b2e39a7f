"""Reflectors that exist once per node list again from the server's cache, and not all at the same time."""

import asyncio
from contextlib import AsyncExitStack

from contrail_config.kube.client import connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver import kinds
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.fast_event_loop import run_fast
from tests.support.recorded_reflector import RecordedReflector, eventually, record_reflector

SPREAD = 100.0
NODES = 20


class Lists:
    """The time of each list on the loop's clock."""

    def __init__(self, server: FakeApiServer) -> None:
        self.times: list[float] = []
        server.faults.before_answer = self._note

    def _note(self, verb: str) -> None:
        if verb == "list":
            self.times.append(asyncio.get_running_loop().time())


async def followers(server: FakeApiServer, stack: AsyncExitStack, count: int) -> list[RecordedReflector]:
    """Reflectors of nodes that have listed and watch."""
    client = await stack.enter_async_context(connect(ClientConfig(server.url)))
    timings = ReflectorTimings(relist_spread=SPREAD)
    reflectors = [Reflector(client, CONFIG_MAPS, timings=timings, from_cache=True) for _ in range(count)]
    followed = [await stack.enter_async_context(record_reflector(reflector)) for reflector in reflectors]
    await eventually(lambda: len(server.watches) == count)
    return followed


def test_nodes_list_again_at_different_moments() -> None:
    async def test() -> None:
        async with serve_fake_apiserver() as server, AsyncExitStack() as stack:
            followed = await followers(server, stack, NODES)
            lists = Lists(server)
            server.forget_history()
            for each in followed:
                while each.lists < 2:  # noqa: ASYNC110 - in fast time
                    await asyncio.sleep(1)
            assert len(lists.times) == NODES
            assert max(lists.times) - min(lists.times) > SPREAD / 4
            assert max(lists.times) - min(lists.times) < SPREAD + 1

    run_fast(test())


def test_the_first_list_is_of_the_newest_state_and_later_ones_are_not_older_than_what_was_seen() -> None:
    async def test() -> None:
        async with serve_fake_apiserver() as server, AsyncExitStack() as stack:
            (followed,) = await followers(server, stack, 1)
            server.put(kinds.CONFIG_MAPS, "a")
            await followed.until(lambda: followed.objects)
            seen = server.storage.revision
            server.put(kinds.NAMESPACES, "elsewhere", namespace="")
            server.forget_history()
            while followed.lists < 2:  # noqa: ASYNC110 - in fast time
                await asyncio.sleep(1)
            assert server.list_queries == [
                {"limit": "500"},
                {"resourceVersion": str(seen), "resourceVersionMatch": "NotOlderThan"},
            ]

    run_fast(test())


def test_what_was_seen_counts_no_more_if_the_history_started_over() -> None:
    async def test() -> None:
        async with serve_fake_apiserver() as server, AsyncExitStack() as stack:
            (followed,) = await followers(server, stack, 1)
            for number in range(50):
                server.put(kinds.CONFIG_MAPS, f"c{number}")
            await followed.until(lambda: len(followed.objects) == 50)
            server.empty_storage()
            server.put(kinds.CONFIG_MAPS, "restored")
            server.forget_history()
            while [name for _, name in followed.objects] != ["restored"]:  # noqa: ASYNC110 - in fast time
                await asyncio.sleep(1)
            assert ["resourceVersion" in query for query in server.list_queries] == [False, True, False]

    run_fast(test())
