"""Fixtures for the tests of config objects and stores: a clock, a fake API server with a client, and each store."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.store import Store
from tests.support.blocking_calls import blocking_calls_rejected
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.fake_clock import FakeClock
from tests.support.stores import STORES, OpenStore, StoreFactory


@pytest.fixture(autouse=True)
def blockbuster() -> Iterator[BlockBuster]:
    """Fails a test in which our code blocks the event loop."""
    with blocking_calls_rejected("contrail_config") as blockbuster:
        yield blockbuster


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with serve_fake_apiserver() as server:
        yield server


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[KubeClient]:
    async with connect(ClientConfig(server.url), deadline=5) as client:
        yield client


@pytest.fixture(params=STORES)
def engine(request: pytest.FixtureRequest) -> str:
    """Name of the engine of the store."""
    return str(request.param)


@pytest.fixture
def store_factory(engine: str) -> StoreFactory:
    return STORES[engine]


@pytest.fixture
async def open_store(store_factory: StoreFactory, tmp_path: Path, clock: FakeClock) -> AsyncIterator[OpenStore]:
    """Opens stores and closes them after the test."""
    opened: list[Store] = []

    async def open_one() -> Store:
        opened.append(await store_factory(tmp_path, clock))
        return opened[-1]

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
async def store(open_store: OpenStore) -> Store:
    return await open_store()
