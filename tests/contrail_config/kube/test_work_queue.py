"""Work queue: one worker per key, many keys in parallel, failed keys are retried."""

import asyncio
import contextvars
import logging
from collections import Counter
from itertools import pairwise

import pytest

from contrail_config.kube import work_queue
from contrail_config.kube.work_queue import WorkQueue
from tests.support.fast_event_loop import run_fast

DEADLINE = 5.0


class Worker:
    """A worker that a test blocks, lets fail, and counts."""

    def __init__(self, *, limit: int = 4) -> None:
        self.done: list[str] = []
        self.active: Counter[str] = Counter()
        self.most_active = 0
        self.fail_next: list[Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.queue = WorkQueue(self.process, limit=limit, transient=TimeoutError)

    async def process(self, key: str) -> None:
        self.active[key] += 1
        assert self.active[key] == 1, "two workers on one key"
        self.most_active = max(self.most_active, self.active.total())
        await self.gate.wait()
        self.active[key] -= 1
        if self.fail_next:
            raise self.fail_next.pop(0)
        self.done.append(key)

    async def idle(self) -> None:
        async with asyncio.timeout(DEADLINE):
            await self.queue.idle()


async def until_done(worker: Worker, number: int) -> None:
    async with asyncio.timeout(DEADLINE):
        while len(worker.done) < number:
            await worker.queue.wait_for_change()


async def test_a_key_is_processed_once_however_often_it_is_added() -> None:
    worker = Worker()
    for key in ("a", "b", "a", "a"):
        worker.queue.add(key)
    await worker.idle()
    assert worker.done == ["a", "b"]


async def test_a_key_added_while_it_is_processed_is_requeued() -> None:
    worker = Worker()
    worker.gate.clear()
    worker.queue.add("a")
    await asyncio.sleep(0)
    assert worker.active["a"] == 1
    worker.queue.add("a")
    worker.queue.add("a")
    worker.gate.set()
    await worker.idle()
    assert worker.done == ["a", "a"]


async def test_keys_are_processed_in_parallel_up_to_the_limit() -> None:
    worker = Worker(limit=3)
    worker.gate.clear()
    keys = [f"key-{number}" for number in range(20)]
    for key in keys:
        worker.queue.add(key)
    assert len(worker.queue) == 20
    await asyncio.sleep(0)
    worker.gate.set()
    await worker.idle()
    assert worker.done == keys
    assert worker.most_active == 3


async def test_a_failed_key_is_retried_later_and_blocks_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(work_queue, "FIRST_RETRY", 0.01)
    worker = Worker()
    worker.fail_next = [TimeoutError("not now")]
    worker.queue.add("a")
    worker.queue.add("b")
    await worker.idle()
    assert worker.done == ["b"]
    assert worker.queue.failing == 1
    await until_done(worker, 2)
    assert worker.done == ["b", "a"]
    assert worker.queue.failing == 0
    (record,) = caplog.records
    assert "a: retry in" in record.getMessage()
    assert record.exc_info is None


async def test_a_bug_is_logged_with_a_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(work_queue, "FIRST_RETRY", 0.01)
    worker = Worker()
    worker.fail_next = [KeyError("oops")]
    worker.queue.add("a")
    await until_done(worker, 1)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.exc_info is not None


def test_retry_delays_grow_to_a_cap_with_jitter() -> None:
    begun: list[float] = []

    async def fail_often(_key: str) -> None:
        begun.append(asyncio.get_running_loop().time())
        if len(begun) <= 40:
            raise TimeoutError

    async def test() -> None:
        queue = WorkQueue(fail_often, limit=1, transient=TimeoutError)
        queue.add("a")
        while len(begun) <= 40:
            await queue.wait_for_change()

    run_fast(test())
    delays = [after - before for before, after in pairwise(begun)]
    firsts = [work_queue.FIRST_RETRY * 2**number for number in range(6)]
    assert all(longest / 2 <= delay <= longest + 1e-6 for delay, longest in zip(delays, firsts, strict=False))
    assert all(work_queue.LONGEST_RETRY / 2 <= delay <= work_queue.LONGEST_RETRY + 1e-6 for delay in delays[10:])
    assert len(set(delays[10:])) > 1


async def test_a_key_is_processed_at_the_earliest_of_its_scheduled_times() -> None:
    worker = Worker()
    worker.queue.add_after("a", 60.0)
    worker.queue.add_after("a", 0.01)
    worker.queue.add_after("a", 30.0)
    assert len(worker.queue) == 0
    await until_done(worker, 1)
    worker.queue.add_after("b", 60.0)
    worker.queue.add("b")
    await worker.idle()
    assert worker.done == ["a", "b"]
    assert worker.queue.scheduled == {}


async def test_no_key_is_processed_while_the_queue_is_paused() -> None:
    worker = Worker()
    worker.gate.clear()
    worker.queue.add("a")
    await asyncio.sleep(0)
    worker.queue.add("b")
    asyncio.get_running_loop().call_soon(worker.gate.set)
    async with asyncio.timeout(DEADLINE), worker.queue.paused():
        finished = list(worker.done)
        worker.queue.add("c")
        await asyncio.sleep(0)
        assert worker.done == finished
        assert worker.active.total() == 0
    await worker.idle()
    assert sorted(worker.done) == ["a", "b", "c"]


async def test_few_deferred_keys_are_processed_at_a_time_and_others_are_started_at_once() -> None:
    worker = Worker(limit=100)
    worker.gate.clear()
    for number in range(100):
        worker.queue.add_deferred(f"deferred-{number}")
    worker.queue.add("a")
    await asyncio.sleep(0)
    assert set(worker.active) == {"a", *(f"deferred-{number}" for number in range(work_queue.DEFERRED_WORKERS))}
    worker.gate.set()
    await worker.idle()
    assert worker.most_active == work_queue.DEFERRED_WORKERS + 1
    assert len(worker.done) == 101


def test_deferred_keys_that_are_always_there_are_processed_at_a_bounded_rate() -> None:
    async def test() -> None:
        worker, seconds = Worker(limit=100), 2
        for _ in range(seconds * 100):
            for number in range(20):
                worker.queue.add_deferred(str(number))
            await asyncio.sleep(0.01)
        rate = work_queue.DEFERRED_WORKERS / work_queue.DEFERRED_PAUSE
        assert rate * seconds / 2 < len(worker.done) <= rate * seconds + work_queue.DEFERRED_WORKERS

    run_fast(test())


def test_deferred_keys_that_failed_are_retried_a_few_at_a_time() -> None:
    async def test() -> None:
        worker, number = Worker(limit=100), 3 * work_queue.DEFERRED_WORKERS
        worker.fail_next = [TimeoutError("away") for _ in range(number)]
        for each in range(number):
            worker.queue.add_deferred(str(each))
        while worker.queue.failing < number:
            await worker.queue.wait_for_change()
        worker.gate.clear()
        await asyncio.sleep(2 * work_queue.FIRST_RETRY)
        assert worker.queue.scheduled == {}
        assert worker.active.total() == work_queue.DEFERRED_WORKERS
        worker.gate.set()
        await worker.idle()
        assert len(worker.done) == number

    run_fast(test())


async def test_deferred_keys_take_no_place_of_others() -> None:
    worker = Worker(limit=1)
    worker.gate.clear()
    worker.queue.add_deferred("deferred")
    await asyncio.sleep(0)
    worker.queue.add("a")
    worker.queue.add("b")
    await asyncio.sleep(0)
    assert set(worker.active) == {"deferred", "a"}
    worker.gate.set()
    await worker.idle()
    assert sorted(worker.done) == ["a", "b", "deferred"]


async def test_a_deferred_key_that_is_added_is_deferred_no_more() -> None:
    worker = Worker(limit=1)
    worker.gate.clear()
    for key in ("x", "y", "a"):
        worker.queue.add_deferred(key)
    worker.queue.add("first")
    worker.queue.add("a")
    worker.queue.add_deferred("a")
    assert len(worker.queue) == len(worker.queue.keys) == 4
    worker.gate.set()
    await worker.idle()
    assert sorted(worker.done[:3]) == ["a", "first", "x"]
    assert worker.done[3:] == ["y"]


async def test_deferred_keys_are_not_waited_for_by_those_who_add_others() -> None:
    worker = Worker(limit=1)
    worker.gate.clear()
    for number in range(10):
        worker.queue.add_deferred(str(number))
    async with asyncio.timeout(DEADLINE):
        await worker.queue.shorter_than(2)
    worker.queue.add_after("5", 60.0)
    assert worker.queue.scheduled == {}, "it is queued already"
    worker.gate.set()
    await worker.idle()
    assert len(worker.done) == 10


async def test_a_key_deferred_while_it_is_processed_is_requeued() -> None:
    worker = Worker(limit=1)
    worker.gate.clear()
    worker.queue.add("a")
    await asyncio.sleep(0)
    worker.queue.add_deferred("a")
    worker.gate.set()
    await worker.idle()
    assert worker.done == ["a", "a"]


async def test_closing_finishes_the_work_in_progress_and_starts_no_more() -> None:
    worker = Worker(limit=1)
    worker.gate.clear()
    worker.queue.add("a")
    worker.queue.add("b")
    worker.queue.add_after("c", 0.0)
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(worker.gate.set)
    async with asyncio.timeout(DEADLINE):
        await worker.queue.close()
    worker.queue.add("d")
    worker.queue.add_after("e", 0.0)
    await worker.idle()
    assert worker.done == ["a"]
    assert len(worker.queue) == 0


async def test_closing_does_not_wait_for_work_that_was_cancelled_before_it_began() -> None:
    """An event loop that ends cancels each task."""
    worker = Worker()
    before = asyncio.all_tasks()
    worker.queue.add("a")
    (task,) = asyncio.all_tasks() - before
    task.cancel()
    async with asyncio.timeout(DEADLINE):
        await worker.queue.close()
    assert worker.done == []


async def test_keys_are_processed_in_the_context_of_the_queue() -> None:
    about = contextvars.ContextVar("about", default="nobody")
    seen: list[str] = []

    async def look(_key: str) -> None:
        seen.append(about.get())

    queue = WorkQueue(look, limit=1)
    about.set("somebody")
    queue.add("a")
    await queue.idle()
    assert seen == ["nobody"]
