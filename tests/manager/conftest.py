"""A manager on each real store in turn; blocking the event loop is an error."""

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster

from manager.configuration import ManagerConfiguration
from manager.source import Source
from tests.support.blocking_calls import blocking_calls_rejected
from tests.support.running_manager import RunningManager, running_manager
from tests.support.stores_with_events import ENGINES, StoreWithEvents, open_at

Start = Callable[..., Awaitable[RunningManager]]


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[BlockBuster]:
    with blocking_calls_rejected("manager", "contrail_config", "contrail_service") as blockbuster:
        yield blockbuster


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Name of the engine of the store."""
    return str(request.param)


@pytest.fixture
async def place(engine: str, tmp_path: Path) -> AsyncIterator[str]:
    """Where the store is, see `open_at`."""
    async with ENGINES[engine](tmp_path) as place:
        yield place


@pytest.fixture
async def store(place: str) -> AsyncIterator[StoreWithEvents]:
    """A store of each engine in turn, open until the test ends."""
    async with open_at(place) as store:
        yield store


@pytest.fixture
async def start(store: StoreWithEvents) -> AsyncIterator[Start]:
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
