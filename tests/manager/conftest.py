"""A manager on a real store; blocking the event loop is an error."""

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from blockbuster import BlockBuster

from contrail_config.embedded.store import SqliteStore
from manager.configuration import ManagerConfiguration
from manager.source import Source
from tests.support.blocking_calls import blocking_calls_rejected
from tests.support.running_manager import RunningManager, running_manager

Start = Callable[..., Awaitable[RunningManager]]


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[BlockBuster]:
    with blocking_calls_rejected("manager", "contrail_config", "contrail_service") as blockbuster:
        yield blockbuster


@pytest.fixture
async def start(store: SqliteStore) -> AsyncIterator[Start]:
    """Starts a manager on the store."""
    async with contextlib.AsyncExitStack() as stack:

        async def start_one(
            configuration: ManagerConfiguration | None = None,
            *,
            source: Source | None = None,
            clock: Callable[[], float] = time.monotonic,
        ) -> RunningManager:
            return await stack.enter_async_context(running_manager(store, configuration, source=source, clock=clock))

        yield start_one


@pytest.fixture
async def running(start: Start) -> RunningManager:
    """A manager with the default configuration."""
    return await start()
