"""The feed computes only when asked, coalesces changes, and answers each new version at once."""

import asyncio
import json
from typing import Any

import pytest

from agent_api.datapath.desired_state import Computation, DesiredState, RoutedPort
from agent_api.datapath.feed import DesiredStateFeed
from agent_api.errors import NotReadyError
from tests.support.served_agent import until


class Source:
    """A state of `count` routed ports; `reason` says why it is not known yet."""

    def __init__(self) -> None:
        self.count = 0
        self.reason: str | None = None

    def compute(self) -> Computation:
        """Returns the state."""
        ports = tuple(RoutedPort(f"tap{number}", "", (), 1500, ()) for number in range(self.count))
        return Computation(DesiredState((), ports, None), {}, ())

    def feed(self, *, pause: float = 0.0) -> DesiredStateFeed:
        """Returns a feed of this source."""
        return DesiredStateFeed(self.compute, not_ready_reason=lambda: self.reason, pause=pause)


@pytest.fixture
def source() -> Source:
    return Source()


async def get(feed: DesiredStateFeed, known: str | None = None, wait: float = 0.0) -> dict[str, Any]:
    async with asyncio.timeout(10):
        content: dict[str, Any] = json.loads(await feed.get(known=known, wait=wait))
    return content


async def test_changes_are_not_computed_until_somebody_asks(source: Source) -> None:
    feed = source.feed()
    for _ in range(100):
        feed.changed()
    assert feed.computations == 0
    await get(feed)
    await get(feed)
    assert feed.computations == 1


async def test_equal_states_have_equal_versions_also_in_another_process(source: Source) -> None:
    feed = source.feed()
    before = await get(feed)
    source.count = 1
    feed.changed()
    assert (await get(feed))["version"] != before["version"]
    source.count = 0
    feed.changed()
    assert await get(feed) == before == await get(Source().feed())


async def test_a_known_version_is_answered_by_the_next_one(source: Source) -> None:
    feed = source.feed()
    version = (await get(feed))["version"]
    waiting = asyncio.create_task(get(feed, version, wait=30))
    await until(lambda: len(feed.waiters))
    feed.changed()  # but the state is equal
    await until(lambda: feed.computations == 2 and len(feed.waiters))
    source.count = 1
    feed.changed()
    assert len((await waiting)["routed"]) == 1


async def test_an_unknown_version_is_answered_at_once(source: Source) -> None:
    assert (await get(source.feed(), "of-another-agent", wait=30))["routed"] == []


async def test_a_time_out_repeats_the_known_version(source: Source) -> None:
    feed = source.feed()
    before = await get(feed)
    assert await get(feed, before["version"], wait=0.01) == before


async def test_many_changes_are_one_computation(source: Source) -> None:
    feed = source.feed(pause=0.05)
    version = (await get(feed))["version"]
    waiting = asyncio.create_task(get(feed, version, wait=30))
    await until(lambda: len(feed.waiters))
    for count in range(1, 101):
        source.count = count
        feed.changed()
        await asyncio.sleep(0)
    assert len((await waiting)["routed"]) == 100
    assert feed.computations == 2


async def test_nothing_is_served_before_the_lists_are_complete(source: Source) -> None:
    source.reason = "virtual machines: not listed yet"
    feed = source.feed()
    for wait in (0.0, 0.01):
        with pytest.raises(NotReadyError, match="virtual machines: not listed yet"):
            await get(feed, wait=wait)
    assert feed.computations == 0
    waiting = asyncio.create_task(get(feed, wait=30))
    await until(lambda: len(feed.waiters))
    source.reason = None
    feed.changed()
    assert (await waiting)["routed"] == []


async def test_a_stopping_agent_answers_those_who_wait(source: Source) -> None:
    feed = source.feed()
    version = (await get(feed))["version"]
    waiting = asyncio.create_task(get(feed, version, wait=30))
    await until(lambda: len(feed.waiters))
    feed.waiters.stop()
    with pytest.raises(NotReadyError, match="stopping"):
        await waiting
