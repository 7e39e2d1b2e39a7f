"""Works that go on for as long as the others do."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def until_first_ends(*works: Coroutine[Any, Any, None]) -> None:
    """Does them side by side until one of them ends, and raises what it raises."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
