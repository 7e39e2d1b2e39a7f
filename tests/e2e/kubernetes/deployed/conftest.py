"""One cluster for all modules; per module a manager and the agents of two nodes, with their service accounts."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster, Tenant
from tests.e2e.kubernetes.deployed.runtime import Runtime
from tests.support.cluster_processes import AgentProcess, ManagerProcess, running
from tests.support.netns import Netns
from tests.support.real_apiserver.shared import shared_apiserver


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    return Cluster(shared_apiserver())


@pytest.fixture(scope="module")
def manager(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagerProcess]:
    """The leading manager."""
    work = tmp_path_factory.mktemp("manager")
    manager = ManagerProcess(work, cluster.kubeconfig("contrail-manager"), lease_namespace=NAMESPACE)
    with running(manager):
        manager.wait_until_it_leads()
        yield manager
        assert manager.stop() == 0


@pytest.fixture(scope="module")
def agents(
    manager: ManagerProcess, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[AgentProcess, AgentProcess]]:
    """Agents of `node-1` and `node-2`, started after the manager."""
    first, second = (
        AgentProcess(tmp_path_factory.mktemp(node), cluster.agent_kubeconfig(node), node=node)
        for node in ("node-1", "node-2")
    )
    with running(first, second):
        yield first, second
        assert (first.stop(), second.stop()) == (0, 0)


@pytest.fixture
def tenant(cluster: Cluster) -> Tenant:
    return Tenant(cluster)


@pytest.fixture
def runtime(agents: tuple[AgentProcess, AgentProcess], make_netns: Callable[[str], Netns], tmp_path: Path) -> Runtime:
    """The runtime of `node-1`."""
    return Runtime(make_netns("node"), tmp_path, agents[0].socket)
