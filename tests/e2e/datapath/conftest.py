"""A cluster and, one after the other, a node per mode of kube-proxy, with two pods, for all tests of the folder."""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.e2e.datapath.cluster import POD_SUBNETS, Cluster
from tests.e2e.datapath.node import NODE, OUTSIDE, UPLINK, AttachedPod, Node
from tests.e2e.host import temporary_host
from tests.e2e.kube_proxy import MODES, KubeProxy
from tests.e2e.name_server import serve_names
from tests.e2e.polling import wait_until
from tests.e2e.services import SERVER_PORT, Service
from tests.support.cluster_processes import running
from tests.support.loopback_proxy import loopback_proxy
from tests.support.real_apiserver.server import ApiServer, serve_real_apiserver


class Pods(NamedTuple):
    """Two pods of the node, with servers of their names."""

    web: AttachedPod
    client: AttachedPod


class Services(NamedTuple):
    """Services of the node: behind them are the pod `web`, the node itself, and the host outside."""

    web: Service
    web_local: Service
    node: Service
    outside: Service


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    """Replaced by the check of the fixture `node`, on which all tests have their pods."""


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with serve_real_apiserver(tmp_path_factory.mktemp("datapath-cluster")) as server:
        yield server


@pytest.fixture(scope="session")
def cluster(api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(api_server, tmp_path_factory.mktemp("datapath-manager"))
    with running(cluster.manager):
        cluster.manager.wait_until_it_leads()
        yield cluster


@pytest.fixture(scope="session", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """Mode of kube-proxy."""
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="session")
def node(mode: str, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A running node; at the end nothing of its pods may be left."""
    with temporary_host() as host, loopback_proxy(cluster.server.url, host.net), contextlib.ExitStack() as stack:
        node = Node(f"worker-{mode}", host, tmp_path_factory.mktemp("node"), cluster)
        stack.callback(node.daemon.kill)
        stack.callback(node.stop_agent)
        node.start()
        for path in (node.path, node.outside):
            stack.enter_context(serve_names(path, "node" if path == node.path else "outside", SERVER_PORT))
        before = node.everything()
        yield node
        wait_until(lambda: node.our_rules() == "", what="without rules of pods", otherwise=node.our_rules)
        # Mounts of the machine that others remove meanwhile are no matter of this node.
        wait_until(
            lambda: not node.everything() - before,
            what="without leftovers",
            otherwise=lambda: str(sorted(node.everything() - before)),
        )
        assert host.net.links() == [UPLINK]


@pytest.fixture(scope="session")
def pods(node: Node) -> Iterator[Pods]:
    with contextlib.ExitStack() as stack:
        made = Pods(*(stack.enter_context(node.attached(f"{name}-{node.name}")) for name in Pods._fields))
        for name, pod in zip(Pods._fields, made, strict=True):
            stack.enter_context(serve_names(pod.path, name, SERVER_PORT))
        yield made


@pytest.fixture(scope="session")
def services(cluster: Cluster, node: Node, pods: Pods) -> Iterator[Services]:
    local = {"type": "NodePort", "externalTrafficPolicy": "Local"}
    made = Services(
        cluster.add_service(f"web-{node.name}", node.name, pods.web.addresses, type="NodePort"),
        cluster.add_service(f"web-local-{node.name}", node.name, pods.web.addresses, **local),
        cluster.add_service(f"node-{node.name}", node.name, NODE),
        cluster.add_service(f"outside-{node.name}", node.name, OUTSIDE),
    )
    yield made
    for service in made:
        cluster.remove_service(service)


@pytest.fixture(scope="session")
def kube_proxy(
    mode: str, cluster: Cluster, node: Node, services: Services, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KubeProxy]:
    """A kube-proxy that has programmed the Services."""
    assert services
    work, kubeconfig = tmp_path_factory.mktemp("kube-proxy"), cluster.server.kubeconfig()
    proxy = KubeProxy(node.host, work, kubeconfig, mode=mode, name=node.name, pods=POD_SUBNETS)
    try:
        proxy.start()
        yield proxy
    finally:
        proxy.kill()
