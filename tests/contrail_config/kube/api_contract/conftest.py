"""Fixtures that run each test of this folder on each server, in its own namespace."""

import uuid
from collections.abc import AsyncIterator

import msgspec
import pytest

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.resource import Metadata, Resource
from tests.support.apiservers import API_SERVERS
from tests.support.config_maps import ConfigMaps


class Namespace(msgspec.Struct, frozen=True):
    """A namespace with its name only."""

    metadata: Metadata


NAMESPACES = Resource("", "v1", "Namespace", "namespaces", Namespace, namespaced=False)


@pytest.fixture(params=API_SERVERS)
async def client(request: pytest.FixtureRequest) -> AsyncIterator[KubeClient]:
    async with API_SERVERS[request.param]() as access, connect(access) as client:
        yield client


@pytest.fixture
async def namespace(client: KubeClient) -> AsyncIterator[str]:
    name = f"contract-{uuid.uuid4().hex[:12]}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    yield name
    await client.delete(NAMESPACES, name)


@pytest.fixture
def config_maps(client: KubeClient, namespace: str) -> ConfigMaps:
    return ConfigMaps(client, namespace)
