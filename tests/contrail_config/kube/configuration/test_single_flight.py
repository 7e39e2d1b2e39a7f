"""Single flight: concurrent callers share a run, which outlives them, and whose outcome is not lost."""

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest

from contrail_config.kube.configuration.single_flight import SingleFlight


class Work:
    """Done when it is said, with what is said."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self.shared = SingleFlight(self._do)
        self._results: asyncio.Queue[str | Exception] = asyncio.Queue()

    async def _do(self) -> str:
        self.begun += 1
        try:
            result = await self._results.get()
        finally:
            self.ended += 1
        if isinstance(result, Exception):
            raise result
        return result

    async def asked(self) -> asyncio.Task[str]:
        """Somebody who waits for it."""
        task = asyncio.create_task(self.shared.do())
        await turns()
        return task

    async def given_up(self) -> None:
        """Somebody has waited for it."""
        task = await self.asked()
        task.cancel()
        await asyncio.wait([task])

    async def say(self, result: str | Exception) -> None:
        self._results.put_nowait(result)
        await turns()


async def turns() -> None:
    """Lets others do what they can at once."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def work() -> AsyncIterator[Work]:
    work = Work()
    yield work
    await work.shared.close()


async def test_concurrent_callers_wait_for_one_run(work: Work) -> None:
    asked = [await work.asked() for _ in range(3)]
    await work.say("done")
    assert [await each for each in asked] == ["done"] * 3
    assert work.begun == 1


async def test_a_later_caller_starts_a_new_run(work: Work) -> None:
    for number in range(3):
        asked = await work.asked()
        await work.say(f"done {number}")
        assert await asked == f"done {number}"


async def test_a_cancelled_caller_does_not_cancel_the_run(work: Work) -> None:
    await work.given_up()
    asked = await work.asked()
    await work.say("done")
    assert await asked == "done"
    assert work.begun == 1


@pytest.mark.parametrize("times", [1, 3])
async def test_the_next_caller_gets_a_result_that_nobody_waited_for(work: Work, times: int) -> None:
    for _ in range(times):
        await work.given_up()
    await work.say("done")
    assert await work.shared.do() == "done"
    await work.asked()
    assert work.begun == 2


async def test_the_next_caller_gets_a_failure_that_nobody_waited_for(work: Work) -> None:
    await work.given_up()
    await work.say(ValueError("of the work"))
    with pytest.raises(ValueError, match="of the work"):
        await work.shared.do()
    asked = await work.asked()
    await work.say("done")
    assert await asked == "done"


async def test_all_waiting_callers_get_a_failure(work: Work) -> None:
    asked = [await work.asked() for _ in range(3)]
    await work.say(ValueError("of the work"))
    for each in asked:
        with pytest.raises(ValueError, match="of the work"):
            await each


async def test_asyncio_does_not_warn_of_a_failure_that_nobody_retrieves(
    work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    await work.given_up()
    await work.say(ValueError("of the work"))
    await work.shared.close()
    gc.collect()
    assert caplog.messages == []


async def test_close_waits_until_the_run_has_ended(work: Work) -> None:
    await work.given_up()
    await work.shared.close()
    assert (work.begun, work.ended) == (1, 1)


async def test_a_cancelled_run_is_restarted_for_callers_that_still_wait(work: Work) -> None:
    asked = await work.asked()
    await work.shared.close()
    await work.say("done")
    assert await asked == "done"
    assert work.begun == 2
