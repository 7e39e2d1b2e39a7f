"""A cluster per module with the manifests applied; tests kill its API server and managers."""

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
    """A client with the administrator's rights."""
    async with connect(await load_client_config(kubeconfig=str(cluster.server.kubeconfig()))) as client:
        yield client


@pytest.fixture
def managers(cluster: Cluster, tmp_path: Path) -> Iterator[Managers]:
    """Managers of the test; all are killed at its end."""
    managers = Managers(cluster, tmp_path)
    yield managers
    managers.kill_all()


@pytest.fixture
async def system(cluster: Cluster) -> AsyncIterator[KubeClient]:
    """A client with the manager's account, which the admission policies allow to change custom resources."""
    async with connect(await load_client_config(kubeconfig=str(cluster.kubeconfig("contrail-manager")))) as client:
        yield client


@pytest.fixture
def pod_load(system: KubeClient, client: KubeClient, namespace: str) -> PodLoad:
    """A load without pods and networks at first."""
    return PodLoad(client, namespace, system=system)
