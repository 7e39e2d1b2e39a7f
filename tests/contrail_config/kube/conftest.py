"""Fixtures for the tests of the Kubernetes client: a fake API server and a client of it."""

from collections.abc import AsyncIterator

import pytest

from contrail_config.kube.access import Access
from contrail_config.kube.client import KubeClient, connect
from tests.support.config_maps import ConfigMaps
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
def config_maps(client: KubeClient) -> ConfigMaps:
    return ConfigMaps(client)
