"""A fake API server with a namespace `blue`, a client of it, and a source that is followed."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from contrail_config.kube.access import Access
from contrail_config.kube.client import KubeClient, connect
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer, serve_fake_apiserver
from tests.support.told_source import ToldSource, follow_source

Follow = Callable[..., Awaitable[ToldSource]]


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with serve_fake_apiserver() as server:
        yield server


@pytest.fixture
def objects(server: FakeApiServer) -> ClusterObjects:
    return ClusterObjects(server)


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[KubeClient]:
    async with connect(Access(server.url), deadline=5) as client:
        yield client


@pytest.fixture
async def follow(client: KubeClient, objects: ClusterObjects) -> AsyncIterator[Follow]:
    """Follows a source until the test ends; arguments are those of `follow_source`."""
    async with contextlib.AsyncExitStack() as stack:

        async def follow_one(**settings: float) -> ToldSource:
            return await stack.enter_async_context(follow_source(client, **settings))

        yield follow_one
