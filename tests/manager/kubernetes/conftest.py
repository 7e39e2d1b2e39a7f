"""A fake API server with a namespace `blue`, a client, a recorded source, and managers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kubernetes.store import KubernetesStore
from manager.configuration import KubernetesSourceSettings as Settings
from manager.configuration import ManagerConfiguration
from manager.kubernetes import process
from manager.kubernetes.cluster import join_cluster
from tests.support.cluster_objects import ClusterObjects
from tests.support.contrail_callers import Caller
from tests.support.contrail_sites import Site, create_site
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.recorded_reflector import DEADLINE, eventually
from tests.support.recorded_source import RecordedSource, record_source
from tests.support.stored_objects import add_node_buckets

Follow = Callable[..., Awaitable[RecordedSource]]
DEFAULTS = ManagerConfiguration()
Managed = Callable[..., AbstractAsyncContextManager[None]]


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with serve_fake_apiserver() as server:
        yield server


@pytest.fixture
def objects(server: FakeApiServer) -> ClusterObjects:
    return ClusterObjects(server)


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[KubeClient]:
    async with connect(ClientConfig(server.url), deadline=5) as client:
        yield client


@pytest.fixture
async def site(caller: Caller, objects: ClusterObjects) -> Site:
    return await create_site(caller, objects)


@pytest.fixture
def killed_in_the_end() -> Iterator[contextlib.ExitStack]:
    """Kills processes after the test."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
async def follow(client: KubeClient, objects: ClusterObjects) -> AsyncIterator[Follow]:
    """Follows a source until the test ends; arguments are those of `follow_source`."""
    async with contextlib.AsyncExitStack() as stack:

        async def follow_one(**settings: Any) -> RecordedSource:
            return await stack.enter_async_context(record_source(client, **settings))

        yield follow_one


@pytest.fixture
def managed(server: FakeApiServer, objects: ClusterObjects) -> Managed:
    """Runs a manager as its process composes it; on entry it has tried every pod."""
    add_node_buckets(server)

    @contextlib.asynccontextmanager
    async def manage(configuration: ManagerConfiguration = DEFAULTS) -> AsyncIterator[None]:
        async with join_cluster(configuration, Settings(), access=ClientConfig(server.url)) as cluster:
            cluster.node_reports.repeat_interval = 0.02
            store = KubernetesStore(cluster.client, flush_interval=0.0, slices=configuration.network_slices)
            manager = process.make_manager(configuration, cluster, store, CollectorRegistry())
            task = asyncio.create_task(cluster.run(lambda: process.lead(cluster, store, manager)))
            try:
                await eventually(lambda: task.done() or (cluster.is_leader and not manager.readiness()))
                yield
            finally:
                task.cancel()
                await asyncio.wait([task], timeout=DEADLINE)

    return manage
