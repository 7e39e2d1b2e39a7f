"""A Kubernetes API server per test module."""

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.configuration.load import load_client_config
from tests.e2e.kubernetes.namespace_objects import NamespaceObjects
from tests.support.real_apiserver.server import ApiServer, serve_real_apiserver


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    """Disables the check for leftovers: these tests have no host."""


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with serve_real_apiserver(tmp_path_factory.mktemp("kubernetes")) as server:
        yield server


@pytest.fixture
async def client(api_server: ApiServer) -> AsyncIterator[KubeClient]:
    """A client with the administrator's rights."""
    async with connect(await load_client_config(kubeconfig=str(api_server.kubeconfig()))) as client:
        yield client


@pytest.fixture
def namespace(api_server: ApiServer) -> str:
    """A new namespace; it is never deleted, as no controller would finish the deletion."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    api_server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@pytest.fixture
def objects(client: KubeClient, namespace: str) -> NamespaceObjects:
    """Objects of the test's namespace."""
    return NamespaceObjects(client, namespace)
