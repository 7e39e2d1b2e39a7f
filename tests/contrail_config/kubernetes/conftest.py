"""Fixtures for the tests of the store of a cluster: a fake API server, and managers of it, each with its own store."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from contrail_config.kube.access import Access
from contrail_config.kube.client import KubeClient, connect
from contrail_config.kubernetes.definitions import ensure_definitions
from contrail_config.kubernetes.store import KubernetesStore
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.clock import FakeClock
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with serve_fake_apiserver() as server:
        yield server


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[KubeClient]:
    async with connect(Access(server.url), deadline=5) as client:
        yield client


@pytest.fixture
async def open_manager(client: KubeClient, clock: FakeClock) -> AsyncIterator[OpenManager]:
    """Gives stores that are closed after the test, each as a manager of its own has it."""
    await ensure_definitions(client)
    async with AsyncExitStack() as opened:

        async def open_one(*, pace: float = 0.0) -> KubernetesStore:
            store = KubernetesStore(client, clock=clock, pace=pace)
            opened.push_async_callback(store.close)
            return store

        yield open_one


@pytest.fixture
async def manager(open_manager: OpenManager) -> KubernetesStore:
    return await open_manager()
