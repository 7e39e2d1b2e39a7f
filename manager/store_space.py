"""Waits for space on the store's disk where a failed write would end the manager: at start, and in its source.

Everything else is retried by its work queue.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from contrail_config.errors import StoreFullError
from contrail_config.kube.backoff import Backoff

log = logging.getLogger(__name__)

_FIRST_RETRY, _LONGEST_RETRY = 0.2, 5.0

T = TypeVar("T")


async def once_there_is_space(operation: Callable[[], Awaitable[T]]) -> T:
    """Returns the result of the operation, which is repeated as long as the disk is full."""
    backoff = Backoff(first=_FIRST_RETRY, longest=_LONGEST_RETRY)
    while True:
        try:
            return await operation()
        except StoreFullError as error:
            pause = backoff.next_pause()
            log.warning("%s (retry in %.1f s)", error, pause)
        await asyncio.sleep(pause)
