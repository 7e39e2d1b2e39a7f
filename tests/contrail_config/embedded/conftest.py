"""Fixtures for what the embedded store alone promises."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contrail_config.embedded.store import SqliteStore
from tests.support.clock import FakeClock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.db"


@pytest.fixture
async def store(path: Path, clock: FakeClock) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path, clock=clock)
    yield store
    await store.close()
