"""Fixtures for the tests of the Kubernetes store: managers, each with a store of its own."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.store import KubernetesStore
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_clock import FakeClock
from tests.support.stored_objects import add_node_buckets


@pytest.fixture
async def open_manager(client: KubeClient, server: FakeApiServer, clock: FakeClock) -> AsyncIterator[OpenManager]:
    """Opens stores, each like the one of a separate manager, and closes them after the test."""
    await ensure_crds(client)
    add_node_buckets(server)
    async with AsyncExitStack() as opened:

        async def open_one(*, flush_interval: float = 0.0, clock: FakeClock = clock) -> KubernetesStore:
            store = KubernetesStore(client, clock=clock, flush_interval=flush_interval)
            opened.push_async_callback(store.close)
            return store

        yield open_one


@pytest.fixture
async def manager(open_manager: OpenManager) -> KubernetesStore:
    return await open_manager()
