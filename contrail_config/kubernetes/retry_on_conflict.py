"""Tries again what met a change that somebody else made at the same moment."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from contrail_config.kube.backoff import Backoff

_LIMIT: Final = 12


async def attempts() -> AsyncIterator[int]:
    """Gives one number for each attempt, with a pause before all but the first; the last one is followed by nothing."""
    backoff = Backoff(first=0.005, longest=0.5)
    yield 0
    for number in range(1, _LIMIT):
        await asyncio.sleep(backoff.next_pause())
        yield number
