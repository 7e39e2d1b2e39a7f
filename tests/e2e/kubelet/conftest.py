"""A cluster of two nodes with the manifests installed, for all tests of the folder, and a check after each module."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.kubelet.cluster import Cluster, running_cluster
from tests.e2e.kubelet.leftovers import of_node
from tests.e2e.kubelet.release import Release, previous_image, previous_release
from tests.e2e.polling import wait_until

Apply = Callable[[str], None]

_TIMEOUT = 300
"""Seconds for the first test, which starts the cluster."""


_LAST = (
    "test_node_readiness.py",
    "test_outage_of_the_api_server.py",
    "test_reboot.py",
    "test_upgrade.py",
    "test_uninstallation.py",
    "test_installation_by_helm.py",
)
"""Modules that stop or change programs of the cluster. The rest comes before, in the order of their names."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sets the timeout, and the order of the modules."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(_TIMEOUT))
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    is_last = Path(__file__).parent == item.path.parent and item.path.name in _LAST
    return 1 + _LAST.index(item.path.name) if is_last else 0


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        cluster.install()
        yield cluster


@pytest.fixture(scope="session")
def previous(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The previous release, whose image is on the nodes."""
    for node in cluster.nodes:
        node.import_image(previous_image())
    return previous_release(tmp_path_factory.mktemp("previous"))


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    """Replaced by a check of this folder, whose other name lets the cluster start after the checks of the whole run."""


@pytest.fixture(scope="module", autouse=True)
def _pods_leave_nothing(cluster: Cluster) -> Iterator[None]:
    """Fails if anything of the pods of a module is left on a node."""
    before = _of_all_nodes(cluster)
    yield
    wait_until(
        lambda: _of_all_nodes(cluster) == before,
        what="without leftovers",
        otherwise=lambda: f"left: {_of_all_nodes(cluster) - before}, missing: {before - _of_all_nodes(cluster)}",
    )


@pytest.fixture
def apply(cluster: Cluster) -> Iterator[Apply]:
    """Creates the objects of a file in `workloads`, and deletes them after the test."""
    applied: list[str] = []

    def create(workload: str) -> None:
        applied.append(workload)
        cluster.apply(workload)

    yield create
    for workload in applied:
        cluster.delete(workload)


def _of_all_nodes(cluster: Cluster) -> Counter[str]:
    found = Counter[str]()
    for node in cluster.nodes:
        found.update(of_node(node))
    return found
