"""Tunnel MTU: the longest packet of a pod that fits the link with the node's tunnel address."""

import pytest

from tests.cni_contrail.datapath.tunnels.conftest import RED
from tests.support.node_fabric import Cluster, FabricNode, cluster_of

INTERVAL = 60.0
"""Seconds, longer than that between two measurements."""


def measured(cluster: Cluster, node: FabricNode) -> int | None:
    """Returns the tunnel MTU after another round, as long after the last one as an audit."""
    cluster.clock.advance(INTERVAL)
    assert not node.reconcile([cluster.network(node, RED)], cluster.underlay(node)).problems
    return node.reconciler.tunnel_mtu


@pytest.mark.parametrize(("families", "overhead"), [((0,), 50), ((1,), 70), ((0, 1), 50)])
def test_it_is_that_of_the_link_less_the_overhead_of_the_preferred_family(
    families: tuple[int, ...], overhead: int
) -> None:
    with cluster_of(1, families) as cluster:
        assert measured(cluster, cluster.nodes[0]) == 1500 - overhead


def test_a_changed_link_is_measured_again(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    assert measured(cluster, node) == 1450
    for mtu in (1600, 1490):
        node.namespace.ip("link", "set", "eth0", "mtu", str(mtu))
        assert measured(cluster, node) == mtu - 50


def test_without_a_tunnel_address_nothing_is_measured(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    node.reconcile([cluster.network(node, RED)], None)
    assert node.reconciler.tunnel_mtu is None


def test_an_address_that_no_link_has_is_not_measured(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    node.namespace.ip("address", "flush", "dev", "eth0")
    cluster.clock.advance(INTERVAL)
    node.reconcile([cluster.network(node, RED)], cluster.underlay(node))
    assert node.reconciler.tunnel_mtu is None


def test_an_address_on_loopback_has_the_mtu_of_the_narrowest_way_to_another_node(cluster: Cluster) -> None:
    node, other = cluster.nodes
    node.namespace.ip("address", "add", "192.0.2.1/32", "dev", "lo")
    node.namespace.ip("address", "replace", "198.51.100.1/24", "dev", "eth0")
    node.namespace.ip("address", "delete", "192.0.2.1/24", "dev", "eth0")
    node.namespace.ip("route", "add", "192.0.2.2/32", "dev", "eth0", "mtu", "1480")
    assert measured(cluster, node) is None
    cluster.add_pod(other, RED, 3)
    cluster.clock.advance(INTERVAL)
    node.reconcile([cluster.network(node, RED)], cluster.underlay(node))
    assert node.reconciler.tunnel_mtu == 1430
