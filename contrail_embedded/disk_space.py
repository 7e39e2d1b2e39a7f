"""Retries of a start on a full disk, where the agent's part of the node cannot create its files.

The store maps such errors itself (`contrail_config.embedded.full_disk`); the agent is also used without a store on a
disk.
"""

import errno
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from contrail_config.errors import StoreFullError
from contrail_service.errors import ServiceError
from manager.store_space import once_there_is_space

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)

T = TypeVar("T")


async def retry_while_disk_is_full(start: Callable[[], Awaitable[T]]) -> T:
    """Returns the result of `start`, which is repeated as long as it fails because there is no space."""

    async def attempt() -> T:
        try:
            return await start()
        except ServiceError as error:
            if _is_full(error):
                raise StoreFullError(str(error)) from error
            raise

    return await once_there_is_space(attempt)


def _is_full(error: BaseException | None) -> bool:
    """Whether the error, or one that caused it, is that of a full disk."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        error = error.__cause__
    return False
