"""Pods whose addresses are in a block of another node: they have routes of their own, on all nodes."""

from cni_contrail.datapath.desired import RemoteBlock
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.datapath.node_reconciler import STALE_SECONDS
from tests.cni_contrail.datapath.tunnels.conftest import RED, Pair, connected
from tests.support.node_fabric import GATEWAYS, Cluster, FabricNode
from tests.support.plugged_pods import route_by_gateways

BLOCKS = ("10.7.0.0/26", "fd07::/122")
BORROWED = ("10.7.0.3/32", "fd07::3/128")


def reconcile(cluster: Cluster, node: FabricNode, *blocks: RemoteBlock) -> int:
    """Brings a routed network to this state, and returns the number of changes."""
    network = cluster.network(node, RED)._replace(remotes=(), blocks=blocks, is_routed=True)
    outcome = node.reconcile([network], cluster.underlay(node))
    assert not outcome.problems, outcome.problems
    return outcome.changes[RED] + outcome.changes[INDEX_0]


def on_link(node: FabricNode) -> list[str]:
    """Addresses of this node's pods that have a route of their own."""
    lines = [line for family in ("-4", "-6") for line in node.networks.run(RED, "ip", family, "route").splitlines()]
    return [line.split()[0] for line in lines if "via" not in line and "proto 67" in line]


def test_pods_with_borrowed_addresses_reach_the_node_of_the_block(cluster: Cluster, pair: Pair) -> None:
    first, second = pair
    cluster.let_removals_begin()
    at_home = tuple(RemoteBlock(cidr, first.node.tunnel) for cidr in BLOCKS)
    lent = tuple(RemoteBlock(cidr, second.node.tunnel) for cidr in BORROWED)
    for pod, blocks in ((first, lent), (second, at_home)):
        assert reconcile(cluster, pod.node, *blocks) > 0
        assert reconcile(cluster, pod.node, *blocks) == 0
        route_by_gateways(pod.namespace, GATEWAYS)
    connected(pair)
    assert on_link(second.node) == ["10.7.0.3", "fd07::3"]
    assert on_link(first.node) == []


def test_a_borrowed_address_that_comes_or_goes_replaces_its_route_in_place(cluster: Cluster, pair: Pair) -> None:
    first, second = pair
    cluster.let_removals_begin()
    at_home = tuple(RemoteBlock(cidr, first.node.tunnel) for cidr in BLOCKS)
    elsewhere = tuple(RemoteBlock(cidr, first.node.tunnel) for cidr in BORROWED)
    reconcile(cluster, second.node, *at_home, *elsewhere)
    assert on_link(second.node) == ["10.7.0.3", "fd07::3"], "a pod of this node takes precedence"
    cluster.pods.remove(second)
    second.node.networks.run(RED, "ip", "link", "delete", second.port.link)
    reconcile(cluster, second.node, *at_home, *elsewhere)
    assert on_link(second.node) == []
    assert "10.7.0.3 via" in second.node.networks.run(RED, "ip", "route")
    cluster.clock.advance(STALE_SECONDS)
    reconcile(cluster, second.node, *at_home)
    assert "10.7.0.3" not in second.node.networks.run(RED, "ip", "route")
