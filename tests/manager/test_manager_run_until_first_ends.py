"""run_until_first_ends: the first result counts, and nothing keeps running."""

import asyncio

import pytest

from manager.manager import run_until_first_ends


async def test_the_plain_error_of_the_first_failure_is_raised_and_the_others_are_cancelled() -> None:
    cancelled = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def fail() -> None:
        await asyncio.sleep(0)
        raise OSError("on purpose")

    with pytest.raises(OSError, match="on purpose"):
        await run_until_first_ends(wait(), fail())
    assert cancelled.is_set()


async def test_an_orderly_end_cancels_the_others_without_an_error() -> None:
    await run_until_first_ends(asyncio.sleep(0), asyncio.sleep(3600))


async def test_cancellation_is_passed_on() -> None:
    task = asyncio.create_task(run_until_first_ends(asyncio.sleep(3600), asyncio.sleep(3600)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
