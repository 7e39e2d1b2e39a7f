"""Virtual machines that were deleted from the store, by the manager itself or by somebody else.

Only the manager knows which virtual machines should exist, so it receives every deletion, its own included, and
decides. Only a store that others can write to reports deletions.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec

from contrail_config.objects import VirtualMachine


class Removed(msgspec.Struct, frozen=True):
    """A virtual machine was deleted. `last` is its last state, None if it is undecodable."""

    uuid: str
    last: VirtualMachine | None


class Remaining(msgspec.Struct, frozen=True):
    """Uuids of all virtual machines that exist: sent after a gap in which deletions may have been missed."""

    uuids: AbstractSet[str]


Deletion = Removed | Remaining

WatchDeletions = Callable[[], AbstractAsyncContextManager[AsyncIterator[Deletion]]]
"""Returns a context that yields all deletions from its entry on; the iteration does not end by itself."""


@asynccontextmanager
async def no_deletions() -> AsyncIterator[AsyncIterator[Deletion]]:
    """Deletions of a store that nobody else can write to: none."""
    yield _nothing()


async def _nothing() -> AsyncIterator[Deletion]:
    # An async generator must contain a `yield`, though this future never resolves.
    never: asyncio.Future[list[Deletion]] = asyncio.get_running_loop().create_future()
    for deletion in await never:
        yield deletion
