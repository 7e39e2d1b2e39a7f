"""Nodes without pods: they reach pods on other nodes from the moment on when they have joined."""

import pytest

from tests.e2e.across_nodes.attached_pods import attached
from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.node import Node
from tests.e2e.polling import wait_until
from tests.support.echo import reaches

pytestmark = pytest.mark.usefixtures("_network")


def own_addresses(cluster: Cluster, node: Node) -> list[str]:
    """The addresses of a node in the pod network, the only one of which it has slices."""
    return [address for item in cluster.slices(node) for address in item["spec"].get("nodeAddresses", ())]


def test_a_node_reaches_pods_of_other_nodes_before_its_first_pod(cluster: Cluster) -> None:
    empty, *others = cluster.nodes
    wait_until(lambda: all(len(own_addresses(cluster, node)) == 2 for node in cluster.nodes), what="with addresses")
    for node in cluster.nodes:
        for name in ("all", "default", "eth0"):
            assert node.namespace.run("sysctl", "-qw", f"net.ipv4.conf.{name}.rp_filter=1").returncode == 0
    before = own_addresses(cluster, empty)
    for node in others:
        with attached(cluster, f"only-{node.name}", node) as pod:
            for address in pod.index_0:
                assert reaches(empty.namespace, address, timeout=10), (node.name, address)
                for own in before:
                    if (":" in own) == (":" in address):
                        assert reaches(pod.sandbox, own, timeout=10), (node.name, own)
    assert own_addresses(cluster, empty) == before


def test_a_node_keeps_its_address_when_its_only_pod_comes_and_goes(cluster: Cluster) -> None:
    changed, other = cluster.nodes[:2]
    wait_until(lambda: len(own_addresses(cluster, changed)) == 2, what="with addresses")
    before = own_addresses(cluster, changed)
    with attached(cluster, "target", other) as target:
        with attached(cluster, "passing", changed):
            assert own_addresses(cluster, changed) == before
        assert reaches(changed.namespace, target.index_0[0], timeout=10)
    assert own_addresses(cluster, changed) == before


def test_the_address_goes_with_the_node(cluster: Cluster) -> None:
    gone = cluster.nodes[2]
    wait_until(lambda: len(own_addresses(cluster, gone)) == 2, what="with addresses")
    gone.stop()
    cluster.unregister(gone)
    wait_until(lambda: cluster.slices(gone) == [], what="without slices")
