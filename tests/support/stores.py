"""The stores that the suite in `tests/contrail_config/store_suite` runs on: another one is one more entry in STORES."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from contrail_config.embedded.store import SqliteStore
from contrail_config.store import Store
from tests.support.clock import FakeClock

StoreFactory = Callable[[Path, FakeClock], Awaitable[Store]]
"""Opens a store that keeps what it keeps below a folder, and tells the time by a clock."""

OpenStore = Callable[[], Awaitable[Store]]
"""Opens a test's store, with what it held when it was closed before."""


async def open_embedded(folder: Path, clock: FakeClock) -> SqliteStore:
    return await SqliteStore.open(folder / "store" / "config.db", clock=clock)


STORES: dict[str, StoreFactory] = {"embedded": open_embedded}
