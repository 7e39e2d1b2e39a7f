"""Services of real kube-proxies, one on each of three nodes: pods and nodes reach the pod behind them from everywhere.

Every server answers with its name and the client's address as it sees it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.across_nodes.attached_pods import Pod, attached
from tests.e2e.across_nodes.cluster import NAMESPACE, Cluster
from tests.e2e.across_nodes.kube_proxies import kube_proxies
from tests.e2e.name_server import TCP, UDP, Answer, ask, serve_names
from tests.e2e.services import SERVER_PORT, SERVICE_PORT, Service, Services

GATEWAYS = ("10.32.0.1", "fd00:32::1")
FAMILIES = pytest.mark.parametrize("family", [0, 1], ids=["IPv4", "IPv6"])
_FABRIC = ("192.0.2.254", "2001:db8::fe")


@pytest.fixture(scope="module")
def everywhere(cluster: Cluster, _network: None) -> Iterator[list[Pod]]:
    """A pod on each node."""
    with ExitStack() as stack:
        yield [stack.enter_context(attached(cluster, f"on-{node.name}", node)) for node in cluster.nodes]


@pytest.fixture(scope="module")
def service(cluster: Cluster, everywhere: list[Pod], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A Service of the pod on the first node; nodes have a default route to the fabric, as they usually do."""
    web, *_ = everywhere
    made = Services(cluster.server, NAMESPACE).add_service("web", web.node.name, web.index_0, type="NodePort")
    for address, length, options in zip(_FABRIC, ("24", "64"), ([], ["nodad"]), strict=True):
        cluster.fabric.ip("address", "add", f"{address}/{length}", "dev", "fabric", *options)
        for node in cluster.nodes:
            node.namespace.ip("route", "add", "default", "via", address)
    with (
        serve_names(Path(web.sandbox.path), "web", SERVER_PORT),
        kube_proxies(cluster, tmp_path_factory.mktemp("kube-proxies")),
    ):
        yield made


@FAMILIES
@pytest.mark.parametrize("protocol", [TCP, UDP])
def test_pods_of_every_node_reach_a_cluster_ip_with_their_own_address(
    everywhere: list[Pod], service: Service, family: int, protocol: str
) -> None:
    web, *others = everywhere
    for pod in others:
        answer = ask(Path(pod.sandbox.path), service.addresses[family], SERVICE_PORT, protocol)
        assert answer == Answer("web", pod.index_0[family])
    own = ask(Path(web.sandbox.path), service.addresses[family], SERVICE_PORT, protocol)
    assert own == Answer("web", GATEWAYS[family])


@FAMILIES
def test_every_node_reaches_a_cluster_ip(cluster: Cluster, service: Service, family: int) -> None:
    for node in cluster.nodes:
        answer = ask(Path(node.namespace.path), service.addresses[family], SERVICE_PORT)
        assert answer.server == "web"


@FAMILIES
def test_a_node_port_of_every_node_leads_to_the_pod(cluster: Cluster, service: Service, family: int) -> None:
    for node in cluster.nodes:
        answer = ask(Path(cluster.fabric.path), node.addresses[family], service.node_port)
        assert answer.server == "web"
