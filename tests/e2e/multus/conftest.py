"""A cluster and, one after the other, nodes of each kind, each for all tests of the folder that run on it."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.e2e.host import temporary_host
from tests.e2e.multus import leftovers
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet
from tests.e2e.multus.networks import add_networks
from tests.e2e.multus.node import Node
from tests.e2e.multus.node_kinds import THICK, THIN, NodeKind, RunningMultus
from tests.e2e.polling import wait_until
from tests.support.loopback_proxy import loopback_proxy
from tests.support.real_apiserver.server import ApiServer, serve_real_apiserver


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    """Replaced by checks of the fixtures `kubelet` (sandboxes) and `multus` (node and cluster)."""


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with serve_real_apiserver(tmp_path_factory.mktemp("multus-cluster")) as server:
        yield server


@pytest.fixture(scope="session")
def cluster(api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(api_server, tmp_path_factory.mktemp("multus-manager"))
    try:
        cluster.start_manager()
        add_networks(cluster)
        yield cluster
    finally:
        cluster.manager.kill()


@pytest.fixture(scope="session", params=[THIN, THICK], ids=lambda kind: kind.name)
def multus(
    request: pytest.FixtureRequest, api_server: ApiServer, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningMultus]:
    """Multus of either kind on a running node; at the end nothing of any attachment may be left."""
    kind: NodeKind = request.param
    work = tmp_path_factory.mktemp("node")
    with temporary_host() as host, loopback_proxy(api_server.url, host.net):
        node = Node(f"worker-{kind.name.replace(' ', '-')}", host, work, api_server, kind.installation)
        running = kind.multus(node, api_server, work)
        with node.running_agent():
            try:
                running.start()
                before = leftovers.of_node(node)
                yield running
                wait_until(lambda: cluster.left() == [], what="without pods", otherwise=lambda: str(cluster.left()))
                assert leftovers.of_node(node) - before == Counter()
            finally:
                running.kill()


@pytest.fixture
def node(multus: RunningMultus) -> Node:
    """The node that Multus runs on."""
    return multus.node


@pytest.fixture
def kubelet(cluster: Cluster, node: Node) -> Iterator[Kubelet]:
    """A kubelet; after the test nothing of its pods may be left."""
    kubelet = Kubelet(cluster, node)
    yield kubelet
    assert kubelet.end_all() == []
