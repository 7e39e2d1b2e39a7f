"""What becomes of machines without the manager: somebody else removed them from the store.

Which machines there should be is known to the manager alone, so it is told of everything that goes, also of what it
deleted itself, and judges. Only a store that others can write to has anything to tell.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec

from contrail_config.objects import VirtualMachine


class Removed(msgspec.Struct, frozen=True):
    """A machine is no more. `place` is `namespace/pod`, `last` its last state, None if that cannot be read."""

    place: str
    uuid: str
    last: VirtualMachine | None


class Remaining(msgspec.Struct, frozen=True):
    """All machines that are there, uuids by place, after a time of which nothing else is known."""

    machines: Mapping[str, str]


Deletion = Removed | Remaining

Deletions = Callable[[], AbstractAsyncContextManager[AsyncIterator[Deletion]]]
"""Gives all that goes from the moment on at which the context is entered; the iteration does not end by itself."""


@asynccontextmanager
async def no_deletions() -> AsyncIterator[AsyncIterator[Deletion]]:
    """The losses of a store that nobody else can write to."""
    yield _nothing()


async def _nothing() -> AsyncIterator[Deletion]:
    never: asyncio.Future[list[Deletion]] = asyncio.get_running_loop().create_future()
    for loss in await never:
        yield loss
