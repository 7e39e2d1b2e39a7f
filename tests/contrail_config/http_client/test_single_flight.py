"""Single flight: concurrent callers share a run, which outlives them, and whose outcome is not lost."""

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest

from contrail_config.http_client.single_flight import SingleFlight


class Work:
    """Work that ends when the test says so, with the result or error that it says."""

    def __init__(self) -> None:
        self.started = 0
        self.ended = 0
        self.shared = SingleFlight(self._do)
        self._results: asyncio.Queue[str | Exception] = asyncio.Queue()

    async def _do(self) -> str:
        self.started += 1
        try:
            result = await self._results.get()
        finally:
            self.ended += 1
        if isinstance(result, Exception):
            raise result
        return result

    async def call(self) -> asyncio.Task[str]:
        """Starts a caller, which waits for the outcome."""
        task = asyncio.create_task(self.shared.do())
        await let_tasks_run()
        return task

    async def cancelled_call(self) -> None:
        """Starts a caller and cancels it."""
        task = await self.call()
        task.cancel()
        await asyncio.wait([task])

    async def finish(self, result: str | Exception) -> None:
        self._results.put_nowait(result)
        await let_tasks_run()


async def let_tasks_run() -> None:
    """Runs all tasks that are ready."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def work() -> AsyncIterator[Work]:
    work = Work()
    yield work
    await work.shared.close()


async def test_concurrent_callers_wait_for_one_run(work: Work) -> None:
    calls = [await work.call() for _ in range(3)]
    await work.finish("done")
    assert [await each for each in calls] == ["done"] * 3
    assert work.started == 1


async def test_a_later_caller_starts_a_new_run(work: Work) -> None:
    for number in range(3):
        call = await work.call()
        await work.finish(f"done {number}")
        assert await call == f"done {number}"


async def test_a_cancelled_caller_does_not_cancel_the_run(work: Work) -> None:
    await work.cancelled_call()
    call = await work.call()
    await work.finish("done")
    assert await call == "done"
    assert work.started == 1


@pytest.mark.parametrize("times", [1, 3])
async def test_the_next_caller_gets_a_result_that_nobody_waited_for(work: Work, times: int) -> None:
    for _ in range(times):
        await work.cancelled_call()
    await work.finish("done")
    assert await work.shared.do() == "done"
    await work.call()
    assert work.started == 2


async def test_the_next_caller_gets_a_failure_that_nobody_waited_for(work: Work) -> None:
    await work.cancelled_call()
    await work.finish(ValueError("of the work"))
    with pytest.raises(ValueError, match="of the work"):
        await work.shared.do()
    call = await work.call()
    await work.finish("done")
    assert await call == "done"


async def test_all_waiting_callers_get_a_failure(work: Work) -> None:
    calls = [await work.call() for _ in range(3)]
    await work.finish(ValueError("of the work"))
    for each in calls:
        with pytest.raises(ValueError, match="of the work"):
            await each


async def test_asyncio_does_not_warn_of_a_failure_that_nobody_retrieves(
    work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    await work.cancelled_call()
    await work.finish(ValueError("of the work"))
    await work.shared.close()
    gc.collect()
    assert caplog.messages == []


async def test_close_waits_until_the_run_has_ended(work: Work) -> None:
    await work.cancelled_call()
    await work.shared.close()
    assert (work.started, work.ended) == (1, 1)


async def test_a_cancelled_run_is_restarted_for_callers_that_still_wait(work: Work) -> None:
    call = await work.call()
    await work.shared.close()
    await work.finish("done")
    assert await call == "done"
    assert work.started == 2
