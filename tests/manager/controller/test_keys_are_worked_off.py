"""The work queue: one task at a time for each key, many keys at once, failures tried again by themselves."""

import asyncio
import contextvars
import logging
from collections import Counter

import pytest

from manager import work_queue
from manager.work_queue import WorkQueue

DEADLINE = 5.0


class Work:
    """Work that a test holds up, lets fail, and counts."""

    def __init__(self, *, limit: int = 4) -> None:
        self.done: list[str] = []
        self.busy: Counter[str] = Counter()
        self.most_at_once = 0
        self.fail_next: list[Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.queue = WorkQueue(self.work, limit=limit, transient=TimeoutError)

    async def work(self, key: str) -> None:
        self.busy[key] += 1
        assert self.busy[key] == 1, "two tasks work on one key"
        self.most_at_once = max(self.most_at_once, self.busy.total())
        await self.gate.wait()
        self.busy[key] -= 1
        if self.fail_next:
            raise self.fail_next.pop(0)
        self.done.append(key)

    async def settled(self) -> None:
        async with asyncio.timeout(DEADLINE):
            await self.queue.idle()


async def until_done(work: Work, number: int) -> None:
    async with asyncio.timeout(DEADLINE):
        while len(work.done) < number:
            await work.queue.wait_for_change()


async def test_a_key_is_worked_off_once_however_often_it_was_added() -> None:
    work = Work()
    for key in ("a", "b", "a", "a"):
        work.queue.add(key)
    await work.settled()
    assert work.done == ["a", "b"]


async def test_a_key_that_is_added_while_it_is_worked_on_is_worked_on_once_more() -> None:
    work = Work()
    work.gate.clear()
    work.queue.add("a")
    await asyncio.sleep(0)
    assert work.busy["a"] == 1
    work.queue.add("a")
    work.queue.add("a")
    work.gate.set()
    await work.settled()
    assert work.done == ["a", "a"]


async def test_no_more_keys_than_the_limit_are_worked_on_at_once_and_all_in_the_end() -> None:
    work = Work(limit=3)
    work.gate.clear()
    keys = [f"key-{number}" for number in range(20)]
    for key in keys:
        work.queue.add(key)
    assert len(work.queue) == 20
    await asyncio.sleep(0)
    work.gate.set()
    await work.settled()
    assert work.done == keys
    assert work.most_at_once == 3


async def test_a_failure_is_tried_again_later_and_holds_up_no_other_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(work_queue, "FIRST_RETRY", 0.01)
    work = Work()
    work.fail_next = [TimeoutError("not now")]
    work.queue.add("a")
    work.queue.add("b")
    await work.settled()
    assert work.done == ["b"]
    assert work.queue.failing == 1
    await until_done(work, 2)
    assert work.done == ["b", "a"]
    assert work.queue.failing == 0
    (record,) = caplog.records
    assert "a: retry in" in record.getMessage()
    assert record.exc_info is None


async def test_a_bug_is_logged_with_its_trace(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(work_queue, "FIRST_RETRY", 0.01)
    work = Work()
    work.fail_next = [KeyError("oops")]
    work.queue.add("a")
    await until_done(work, 1)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.exc_info is not None


async def test_delays_grow_to_a_cap_with_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []
    work = Work()

    def retry_at_once(key: str, delay: float) -> None:
        delays.append(delay)
        work.queue.add(key)

    monkeypatch.setattr(work.queue, "add_after", retry_at_once)
    work.fail_next = [TimeoutError() for _ in range(40)]
    work.queue.add("a")
    await until_done(work, 1)
    assert all(0.5 * work_queue.FIRST_RETRY * 2**n <= delays[n] <= work_queue.FIRST_RETRY * 2**n for n in range(6))
    assert all(work_queue.LONGEST_RETRY / 2 <= delay <= work_queue.LONGEST_RETRY for delay in delays[10:])
    assert len(set(delays[10:])) > 1


async def test_a_key_is_worked_off_at_the_earliest_of_the_moments_that_it_was_added_for() -> None:
    work = Work()
    work.queue.add_after("a", 60.0)
    work.queue.add_after("a", 0.01)
    work.queue.add_after("a", 30.0)
    assert len(work.queue) == 0
    await until_done(work, 1)
    work.queue.add_after("b", 60.0)
    work.queue.add("b")
    await work.settled()
    assert work.done == ["a", "b"]
    assert work.queue.scheduled == {}


async def test_nothing_is_worked_on_while_it_is_paused() -> None:
    work = Work()
    work.gate.clear()
    work.queue.add("a")
    await asyncio.sleep(0)
    work.queue.add("b")
    asyncio.get_running_loop().call_soon(work.gate.set)
    async with asyncio.timeout(DEADLINE), work.queue.paused():
        finished = list(work.done)
        work.queue.add("c")
        await asyncio.sleep(0)
        assert work.done == finished
        assert work.busy.total() == 0
    await work.settled()
    assert sorted(work.done) == ["a", "b", "c"]


async def test_closing_finishes_what_was_begun_and_begins_no_more() -> None:
    work = Work(limit=1)
    work.gate.clear()
    work.queue.add("a")
    work.queue.add("b")
    work.queue.add_after("c", 0.0)
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(work.gate.set)
    async with asyncio.timeout(DEADLINE):
        await work.queue.close()
    work.queue.add("d")
    work.queue.add_after("e", 0.0)
    await work.settled()
    assert work.done == ["a"]
    assert len(work.queue) == 0


async def test_work_is_done_in_the_context_of_the_queue_not_of_who_added_the_key() -> None:
    about = contextvars.ContextVar("about", default="nobody")
    seen: list[str] = []

    async def look(_key: str) -> None:
        seen.append(about.get())

    queue = WorkQueue(look, limit=1)
    about.set("somebody")
    queue.add("a")
    await queue.idle()
    assert seen == ["nobody"]
