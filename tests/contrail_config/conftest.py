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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests of what an engine lacks, on this engine."""
    left_out = [item for item in items if _lacks(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _lacks(item: pytest.Item) -> bool:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    engine = parameters.get("store_factory")
    return engine is not None and any(mark.args[0] == engine for mark in item.iter_markers("lacking"))


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
def store_factory(request: pytest.FixtureRequest) -> StoreFactory:
    return STORES[request.param]


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
