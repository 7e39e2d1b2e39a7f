"""Fixtures for the guarantees of the embedded store."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from contrail_config.embedded.engine import Engine
from contrail_config.embedded.store import SqliteStore
from contrail_config.embedded.worker import Worker
from tests.support.fake_clock import FakeClock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.db"


@pytest.fixture
async def worker(path: Path, clock: FakeClock) -> Worker:
    """The thread of `store`; runs there what a test does to the database."""
    return Worker(partial(Engine, str(path), clock=clock), name=f"store {path}")


@pytest.fixture
async def engine(worker: Worker) -> Engine:
    return await worker.start()


@pytest.fixture
async def store(worker: Worker, engine: Engine) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(worker, engine)
    yield store
    await store.close()
