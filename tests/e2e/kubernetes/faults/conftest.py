"""A cluster for each module, whose API server and managers are killed; our manifests are applied in it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.configuration.load import load_client_config
from tests.e2e.kubernetes.deployed.cluster import Cluster
from tests.e2e.kubernetes.faults.managers import Managers
from tests.e2e.kubernetes.faults.pod_load import PodLoad
from tests.support.real_apiserver.server import ApiServer


@pytest.fixture(scope="module")
def cluster(api_server: ApiServer) -> Cluster:
    return Cluster(api_server)


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[KubeClient]:
    """An administrator."""
    async with connect(await load_client_config(kubeconfig=str(cluster.server.kubeconfig()))) as client:
        yield client


@pytest.fixture
def managers(cluster: Cluster, tmp_path: Path) -> Iterator[Managers]:
    """Those that the test starts; none outlives it."""
    managers = Managers(cluster, tmp_path)
    yield managers
    managers.kill_all()


@pytest.fixture
async def pod_load(client: KubeClient, namespace: str) -> PodLoad:
    """No pods yet, and the networks that they name are not there yet either."""
    return PodLoad(client, namespace)
