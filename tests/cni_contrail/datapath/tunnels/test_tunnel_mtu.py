"""Tunnel MTU: the longest packet of a pod that fits the node's tunnels: its links and routes to other nodes."""

import errno
import os
import socket

import pytest

from cni_contrail.datapath.desired import RemoteEndpoint
from tests.cni_contrail.datapath.tunnels.conftest import RED, Pair
from tests.support.node_fabric import Cluster, FabricNode, cluster_of

INTERVAL = 60.0
"""Seconds, longer than that between two measurements."""

_IP_MTU_DISCOVER, _IP_PMTUDISC_DO, _IP_RECVERR = 10, 2, 11  # linux/in.h


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


def test_a_link_that_only_has_the_address_does_not_count(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    node.namespace.ip("link", "add", "router-id", "mtu", "1280", "up", "type", "bridge")
    node.namespace.ip("address", "add", "192.0.2.1/32", "dev", "router-id")
    node.namespace.ip("-4", "address", "flush", "dev", "eth0")
    node.namespace.ip("address", "add", "192.0.2.11/24", "dev", "eth0")
    assert measured(cluster, node) == 1450


def test_a_narrow_way_to_another_node_counts_also_by_another_link_than_that_of_the_address(
    cluster: Cluster, pair: Pair
) -> None:
    node = pair[0].node
    cluster.mtu = 1300
    assert measured(cluster, node) == 1450
    node.run("ip", "tuntap", "add", "wg0", "mode", "tun")
    node.namespace.ip("link", "set", "wg0", "mtu", "1420", "up")
    node.namespace.ip("route", "add", "192.0.2.2/32", "dev", "wg0")
    assert measured(cluster, node) == 1370


def test_the_link_of_a_tunnel_between_nodes_is_measured_as_any_other(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    node.run("ip", "tuntap", "add", "wg0", "mode", "tun")
    node.namespace.ip("address", "delete", "192.0.2.1/24", "dev", "eth0")
    node.namespace.ip("address", "add", "192.0.2.1/24", "dev", "wg0")
    node.namespace.ip("link", "set", "wg0", "mtu", "1420", "up")
    assert measured(cluster, node) == 1370


def test_an_mtu_that_a_router_has_advertised_counts_for_tunnels_over_ipv6_only() -> None:
    for families, expected in (((1,), 1400 - 70), ((0,), 1500 - 50)):
        with cluster_of(1, families) as cluster:
            node = cluster.nodes[0]
            node.run("sysctl", "-qw", "net.ipv6.conf.eth0.mtu=1400")
            assert measured(cluster, node) == expected


def test_what_a_router_on_the_way_says_is_a_problem_but_not_the_tunnel_mtu(cluster: Cluster) -> None:
    node, router = cluster.nodes
    router.namespace.ip("link", "add", "narrow", "mtu", "1300", "up", "type", "bridge")
    router.namespace.ip("route", "add", "198.51.100.7/32", "dev", "narrow")
    router.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
    node.namespace.ip("route", "add", "198.51.100.7/32", "via", "192.0.2.2", "mtu", "1490")
    learn_path_mtu(node, "198.51.100.7")
    network = cluster.network(node, RED)
    network = network._replace(remotes=(RemoteEndpoint("02:00:00:00:00:09", ("10.7.0.9",), "198.51.100.7"),))
    outcome = node.reconcile([network], cluster.underlay(node))
    assert outcome.problems == {RED: "MTU 1430: packets to node 198.51.100.7 have room for 1250 bytes only"}
    assert node.reconciler.tunnel_mtu == 1490 - 50


def learn_path_mtu(node: FabricNode, address: str) -> None:
    """Sends a packet that does not fit the way, and waits for the answer of the router."""
    with node.namespace.inside():
        sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sending:
        sending.settimeout(10)
        sending.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)
        sending.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
        sending.connect((address, 9))
        sending.send(bytes(1400))
        with pytest.raises(OSError, match=os.strerror(errno.EMSGSIZE)):
            sending.recv(1)
