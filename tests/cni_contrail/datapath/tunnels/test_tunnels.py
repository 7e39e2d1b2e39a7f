"""Networks that span nodes: pods on several nodes, as namespaces joined by a fabric."""

import socket
from contextlib import ExitStack

import pytest

from cni_contrail.datapath.desired import RemoteBlock, Underlay
from cni_contrail.datapath.network_lock import locked_network
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.datapath.node_reconciler import STALE_SECONDS
from cni_contrail.datapath.purge import purge
from cni_contrail.datapath.tunnel_names import BRIDGED
from tests.cni_contrail.datapath.tunnels.conftest import BLUE, RED, Pair, connected, pair_of
from tests.support import frames
from tests.support.echo import reaches
from tests.support.frames import PacketSocket
from tests.support.node_fabric import GATEWAYS, MTU, PORT, Capture, Cluster, cluster_of


def test_pods_of_a_network_reach_each_other_across_nodes(pair: Pair) -> None:
    connected(pair)
    for pod in pair:
        for gateway in GATEWAYS:
            assert reaches(pod.namespace, gateway.address)


@pytest.mark.parametrize("families", [(0,), (1,), (1, 0)], ids=["IPv4 only", "IPv6 only", "IPv6 first"])
def test_the_underlay_has_any_families(families: tuple[int, ...]) -> None:
    with cluster_of(2, families) as cluster:
        connected(pair_of(cluster))
        links = cluster.nodes[0].networks.run(RED, "ip", "-o", "link", "show", "type", "vxlan")
        assert [line.split(": ")[1].partition("@")[0] for line in links.splitlines()] == [BRIDGED[families[0]]]


def test_nodes_of_either_family_are_reached_by_one_that_has_both(cluster: Cluster) -> None:
    third = cluster.add_node()
    cluster.nodes[1].addresses, third.addresses = cluster.nodes[1].addresses[:1], third.addresses[1:]
    pods = [cluster.add_pod(node, RED, number) for number, node in enumerate(cluster.nodes, start=2)]
    for node in cluster.nodes:
        problems = node.reconcile([cluster.network(node, RED)], cluster.underlay(node)).problems
        assert bool(problems) == (node is not cluster.nodes[0]), problems
    for other in pods[1:]:
        connected((pods[0], other))
    assert "this node has no IPv6 tunnel address" in str(
        cluster.nodes[1]
        .reconcile([cluster.network(cluster.nodes[1], RED)], cluster.underlay(cluster.nodes[1]))
        .problems
    )


def test_networks_with_equal_addresses_and_macs_do_not_meet_across_nodes(cluster: Cluster) -> None:
    pods = {
        vni: (cluster.add_pod(cluster.nodes[0], vni, 2), cluster.add_pod(cluster.nodes[1], vni, 3))
        for vni in (RED, BLUE)
    }
    cluster.sync()
    for pair in pods.values():
        connected(pair)
    pods[BLUE][1].namespace.ip("link", "set", "eth0", "down")
    connected(pods[RED])
    for address in pods[BLUE][1].port.addresses:
        assert not reaches(pods[BLUE][0].namespace, address, timeout=0.5)
    cluster.remove_pod(pods[RED][1])
    cluster.let_removals_begin()
    cluster.sync()
    for address in pods[RED][1].port.addresses:
        assert not reaches(pods[RED][0].namespace, address, timeout=0.5)


@pytest.mark.parametrize("address", ["10.7.0.77", "fd07::77"])
def test_unknown_addresses_put_no_frame_on_the_fabric(cluster: Cluster, pair: Pair, address: str) -> None:
    with Capture(cluster, pair[0].node) as capture:
        capture.tunnelled()
        assert not reaches(pair[0].namespace, address, timeout=1.5)
        assert capture.tunnelled() == []
        connected(pair)
        assert capture.tunnelled() != []


def test_unknown_macs_and_broadcast_put_no_frame_on_the_fabric(cluster: Cluster, pair: Pair) -> None:
    first, second = pair
    neighbour = ("neighbour", "replace", second.ipv4, "dev", "eth0", "lladdr", "02:00:00:00:00:77")
    first.namespace.ip(*neighbour)
    with Capture(cluster, first.node) as capture, first.namespace.inside():
        capture.tunnelled()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
            sending.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            for destination in (second.ipv4, "10.7.0.255"):
                sending.sendto(b"to nobody", (destination, 9))
        assert capture.tunnelled() == []


def test_without_tunnel_addresses_a_network_is_what_it_was(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    cluster.add_pod(node, RED, 2)
    outcome = node.reconcile([cluster.network(node, RED)], None)
    assert not outcome.problems
    assert node.networks.run(RED, "ip", "link", "show", "type", "vxlan") == ""
    assert node.run("nft", "list", "ruleset") == ""


def test_tunnels_stay_as_they_are_until_it_is_known_that_there_are_none(cluster: Cluster, pair: Pair) -> None:
    cluster.let_removals_begin()
    nothing = Underlay((), PORT, frozenset())
    networks = {node: cluster.network(node, RED)._replace(remotes=(), is_complete=False) for node in cluster.nodes}
    for node, network in networks.items():
        assert set(node.reconcile([network], nothing).changes.values()) == {0}
    cluster.clock.advance(STALE_SECONDS)
    for node, network in networks.items():
        assert set(node.reconcile([network._replace(is_complete=True)], nothing).changes.values()) == {0}
    connected(pair)
    cluster.clock.advance(STALE_SECONDS)
    for node, network in networks.items():
        assert not node.reconcile([network._replace(is_complete=True)], nothing).problems
        everything = node.networks.run(RED, "ip", "link") + node.networks.run(RED, "ip", "neighbour")
        assert "vx0" not in everything
        assert all(pod.port.mac not in everything for pod in pair if pod.node is not node)
        assert node.run("nft", "list", "ruleset") == ""


def test_a_vni_that_another_link_has_is_a_problem_of_its_network_which_works_on_its_node(cluster: Cluster) -> None:
    pods = [cluster.add_pod(node, vni, 2 + node.number) for node in cluster.nodes for vni in (RED, BLUE)]
    node = cluster.nodes[0]
    node.run("ip", "link", "add", "other", "type", "vxlan", "id", str(RED), "dstport", "4789")
    node.networks.run(RED, "ip", "address", "flush", "dev", "br0")
    outcome = node.reconcile([cluster.network(node, vni) for vni in (RED, BLUE)], cluster.underlay(node))
    assert set(outcome.problems) == outcome.unconnected == {RED}
    assert f"create tunnel vx0 of VNI {RED}" in outcome.problems[RED]
    cluster.nodes[1].reconcile([cluster.network(cluster.nodes[1], BLUE)], cluster.underlay(cluster.nodes[1]))
    connected((pods[1], pods[3]))
    for gateway in GATEWAYS:
        assert reaches(pods[0].namespace, gateway.address)


def test_an_mtu_that_does_not_fit_the_underlay_is_a_problem(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    network = cluster.network(node, RED)._replace(mtu=1451)
    outcome = node.reconcile([network], cluster.underlay(node))
    assert outcome.problems == {RED: "MTU 1451: packets to node 192.0.2.2 have room for 1450 bytes only"}
    node.namespace.ip("link", "set", "eth0", "mtu", "1501")
    cluster.clock.advance(60)
    assert not node.reconcile([network], cluster.underlay(node)).problems


def test_the_largest_mtu_is_judged_until_its_pods_are_replaced(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    network = cluster.network(node, RED)._replace(mtu=1400, largest_mtu=1451)
    outcome = node.reconcile([network], cluster.underlay(node))
    assert outcome.problems == {RED: "MTU 1451: packets to node 192.0.2.2 have room for 1450 bytes only"}


def test_new_pods_with_a_lower_mtu_do_not_cut_off_long_packets_of_others(cluster: Cluster, pair: Pair) -> None:
    for node in cluster.nodes:
        network = cluster.network(node, RED)._replace(mtu=1300, largest_mtu=MTU)
        assert not node.reconcile([network], cluster.underlay(node)).problems
    long_packets_pass(pair)


def test_packets_of_the_size_of_the_mtu_pass(cluster: Cluster, pair: Pair) -> None:
    assert cluster.mtu == MTU
    long_packets_pass(pair)


def long_packets_pass(pair: Pair) -> None:
    """Fails unless a packet of the MTU reaches the other pod as it is."""
    first, second = pair
    packet = frames.ipv4(first.ipv4, second.ipv4, frames.udp(b"a long packet".ljust(MTU - 28, b".")))
    frame = frames.ethernet(first.port.mac, second.port.mac, frames.IPV4, packet)
    with ExitStack() as stack:
        sending, receiving = PacketSocket(first.namespace, "eth0"), PacketSocket(second.namespace, "eth0")
        stack.callback(sending.close)
        stack.callback(receiving.close)
        sending.send(frame)
        assert receiving.received_until(b"a long packet")[-1] == frame


def test_blocks_of_other_nodes_are_routed_in_the_networks_namespace(cluster: Cluster, pair: Pair) -> None:
    first, second = pair
    cluster.let_removals_begin()
    blocks = {first.node: ("10.7.0.2/32", "fd07::2/128"), second.node: ("10.7.0.3/32", "fd07::3/128")}
    for pod, other in (pair, (second, first)):
        network = cluster.network(pod.node, RED)._replace(
            remotes=(), blocks=tuple(RemoteBlock(cidr, other.node.tunnel) for cidr in blocks[other.node])
        )
        assert not pod.node.reconcile([network], cluster.underlay(pod.node)).problems
        assert pod.node.reconcile([network], cluster.underlay(pod.node)).changes == {RED: 0, INDEX_0: 0}
        for gateway, subnet in zip(GATEWAYS, ("10.7.0.0/24", "fd07::/64"), strict=True):
            pod.namespace.ip("route", "delete", subnet, "dev", "eth0")
            pod.namespace.ip("route", "add", f"{gateway.address}", "dev", "eth0")
            pod.namespace.ip("route", "add", subnet, "via", gateway.address, "dev", "eth0")
        pod.namespace.ip("neighbour", "flush", "dev", "eth0")
    connected(pair)
    assert second.port.mac not in first.node.networks.run(RED, "bridge", "fdb")
    first.node.networks.run(RED, "ip", "route", "delete", "10.7.0.3/32")
    network = cluster.network(first.node, RED)._replace(
        remotes=(), blocks=tuple(RemoteBlock(cidr, second.node.tunnel) for cidr in blocks[second.node])
    )
    assert first.node.reconcile([network], cluster.underlay(first.node)).changes[RED] == 1
    connected(pair)


def test_a_network_with_an_uplink_routes_to_blocks_of_other_nodes(cluster: Cluster, pair: Pair) -> None:
    """Rules of the uplink drop what they do not know, so they know packets between pods."""
    first, second = pair
    for pod, other in (pair, (second, first)):
        blocks = tuple(
            RemoteBlock(f"{address}/{128 if ':' in address else 32}", other.node.tunnel)
            for address in other.port.addresses
        )
        network = cluster.network(pod.node, RED)._replace(remotes=(), blocks=blocks, snat=True)
        cluster.clock.advance(STALE_SECONDS)
        for _ in range(2):
            assert not pod.node.reconcile([network], cluster.underlay(pod.node)).problems
            cluster.clock.advance(STALE_SECONDS)
        for gateway, subnet in zip(GATEWAYS, ("10.7.0.0/24", "fd07::/64"), strict=True):
            pod.namespace.ip("route", "delete", subnet, "dev", "eth0")
            pod.namespace.ip("route", "add", f"{gateway.address}", "dev", "eth0")
            pod.namespace.ip("route", "add", subnet, "via", gateway.address, "dev", "eth0")
        pod.namespace.ip("neighbour", "flush", "dev", "eth0")
    assert second.port.mac not in first.node.networks.run(RED, "bridge", "fdb")
    connected(pair)


def test_a_purge_keeps_the_filter_of_tunnels_while_a_network_cannot_be_removed(pair: Pair) -> None:
    connected(pair)
    node = pair[0].node
    with locked_network(node.networks.namespaces, RED), node.namespace.inside():
        purged = purge(node.networks.namespaces, with_ports=True)
    assert (set(purged.problems), INDEX_0 in purged.removed) == ({RED}, False)
    assert "table inet contrail-tunnels" in node.run("nft", "list", "tables")


def test_a_purge_leaves_nothing(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    with node.namespace.inside():
        assert purge(node.networks.namespaces, with_ports=False).kept == {RED: (pair[0].port.link,)}
    connected(pair)
    with node.namespace.inside():
        purged = purge(node.networks.namespaces, with_ports=True)
    assert purged.removed == {RED: (pair[0].port.link,), INDEX_0: ()}
    assert not purged.problems
    assert node.run("nft", "list", "ruleset") == ""
    assert node.networks.namespaces.existing() == set()
