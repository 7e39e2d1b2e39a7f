"""Index 0 across nodes: routes to other nodes' blocks of addresses."""

import socket
from collections.abc import Iterator
from ipaddress import ip_address

import pytest

from cni_contrail.datapath.desired import RemoteBlock, RoutedNetwork, Underlay
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.datapath.node_reconciler import STALE_SECONDS
from cni_contrail.datapath.purge import purge
from tests.support.echo import reaches
from tests.support.echo_stream import EchoStream
from tests.support.node_fabric import MTU, PORT, Capture, Cluster, FabricNode, RoutedPod, cluster_of

Pair = tuple[RoutedPod, RoutedPod]
Networks = dict[FabricNode, RoutedNetwork]
BORROWED = ("10.9.0.9/32", "fd09::9/128")
"""Addresses of the first node's block that a pod of the second node has."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Two nodes with rp_filter 1 on all links."""
    with cluster_of(2) as found:
        for node in found.nodes:
            node.run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1", "net.ipv4.conf.default.rp_filter=1")
        yield found


def blocks_of(node: FabricNode) -> tuple[str, str]:
    """The blocks of a node, whose first addresses are the node's own."""
    first = 64 * (node.number - 1)
    return f"10.9.0.{first}/26", f"{ip_address('fd09::') + first}/122"


def networks_of(cluster: Cluster, *, borrowed: bool = False) -> Networks:
    found = {}
    for node in cluster.nodes:
        remotes = [
            RemoteBlock(cidr, each.tunnel) for each in cluster.nodes if each is not node for cidr in blocks_of(each)
        ]
        if borrowed and node is cluster.nodes[0]:
            remotes += [RemoteBlock(cidr, cluster.nodes[1].tunnel) for cidr in BORROWED]
        own = blocks_of(node)
        addresses = tuple(cidr.partition("/")[0] for cidr in own)
        found[node] = RoutedNetwork(1, MTU, addresses, own, tuple(remotes))
    return found


@pytest.fixture
def pair(cluster: Cluster) -> Pair:
    """A pod on each node."""
    pods = (
        cluster.add_routed_pod(cluster.nodes[0], ("10.9.0.5", "fd09::5")),
        cluster.add_routed_pod(cluster.nodes[1], ("10.9.0.69", "fd09::45")),
    )
    cluster.sync_index_0(networks_of(cluster))
    return pods


def connected(pair: Pair) -> None:
    """Fails unless both pods reach each other and the nodes reach both, in both families."""
    for pod, other in (pair, pair[::-1]):
        for address in other.port.addresses:
            assert reaches(pod.namespace, address), address
            assert reaches(pod.node.namespace, address), address


def test_pods_and_nodes_reach_pods_of_other_nodes(pair: Pair) -> None:
    connected(pair)


@pytest.mark.parametrize("families", [(0,), (1,)], ids=["IPv4 only", "IPv6 only"])
def test_the_underlay_has_any_family(families: tuple[int, ...]) -> None:
    with cluster_of(2, families) as cluster:
        pods = (
            cluster.add_routed_pod(cluster.nodes[0], ("10.9.0.5", "fd09::5")),
            cluster.add_routed_pod(cluster.nodes[1], ("10.9.0.69", "fd09::45")),
        )
        cluster.sync_index_0(networks_of(cluster))
        connected(pods)


def test_a_pod_network_of_ipv4_may_have_an_mtu_that_ipv6_does_not_allow(cluster: Cluster) -> None:
    networks = {
        node: found._replace(
            mtu=1000,
            addresses=found.addresses[:1],
            own_blocks=found.own_blocks[:1],
            remotes=tuple(each for each in found.remotes if ":" not in each.cidr),
        )
        for node, found in networks_of(cluster).items()
    }
    cluster.sync_index_0(networks)
    node, other = cluster.nodes
    assert [sum(each.changes.values()) for each in cluster.sync_index_0(networks)] == [0, 0]
    (address,) = networks[other].addresses
    assert reaches(node.namespace, address)


def test_a_node_without_pods_and_pods_of_another_node_reach_each_other(cluster: Cluster) -> None:
    empty, node = cluster.nodes
    pod = cluster.add_routed_pod(node, ("10.9.0.69", "fd09::45"))
    networks = networks_of(cluster)
    cluster.sync_index_0(networks)
    for own, address in zip(networks[empty].addresses, pod.port.addresses, strict=True):
        assert reaches(empty.namespace, address), address
        assert reaches(pod.namespace, own), own


def test_what_leads_to_other_nodes_stays_without_pods_as_long_as_the_node_has_an_address(cluster: Cluster) -> None:
    node, other = cluster.nodes
    node.run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")  # as from the first pod on
    before = objects(node)
    target = cluster.add_routed_pod(other, ("10.9.0.69", "fd09::45"))
    pod = cluster.add_routed_pod(node, ("10.9.0.5", "fd09::5"))
    networks = networks_of(cluster)
    cluster.sync_index_0(networks)
    node.run("ip", "link", "delete", pod.port.link)
    cluster.routed_pods.remove(pod)
    for _ in range(2):
        cluster.sync_index_0(networks)
        cluster.clock.advance(STALE_SECONDS)
    assert "table inet contrail {" not in node.run("nft", "list", "ruleset"), "what pods have goes with the last one"
    for address in target.port.addresses:
        assert reaches(node.namespace, address), address
    for _ in range(2):  # the cluster has no such node any more
        node.reconcile([], Underlay((), PORT, frozenset()))
        cluster.clock.advance(STALE_SECONDS)
    assert objects(node) == before


def test_a_borrowed_address_is_reached_where_it_is(cluster: Cluster, pair: Pair) -> None:
    borrower = cluster.add_routed_pod(cluster.nodes[1], ("10.9.0.9", "fd09::9"))
    cluster.sync_index_0(networks_of(cluster, borrowed=True))
    connected((pair[0], borrower))


def test_a_borrowed_address_comes_home_without_loss_for_others(cluster: Cluster, pair: Pair) -> None:
    cluster.sync_index_0(networks_of(cluster, borrowed=True))
    stream = EchoStream(pair[0].namespace, pair[1].ipv4)
    with stream.running():
        home = cluster.add_routed_pod(cluster.nodes[0], ("10.9.0.9", "fd09::9"))
        for borrowed in (True, False):  # the other node's claim is late
            cluster.sync_index_0(networks_of(cluster, borrowed=borrowed))
            connected((home, pair[1]))
    assert stream.lost() == 0, stream.gaps()
    assert cluster.sync_index_0(networks_of(cluster))[0].changes[INDEX_0] == 0


def test_an_address_of_a_port_that_an_add_is_creating_stays_here(cluster: Cluster, pair: Pair) -> None:
    home = cluster.add_routed_pod(cluster.nodes[0], ("10.9.0.9", "fd09::9"))
    cluster.routed_pods.remove(home)
    cluster.sync_index_0(networks_of(cluster, borrowed=True))
    connected((home, pair[1]))


def test_addresses_without_a_pod_are_unreachable(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    node.run("ip", "route", "add", "default", "via", "192.0.2.2")
    for address in ("10.9.0.33", "fd09::33"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with pair[0].namespace.inside(), socket.socket(family, socket.SOCK_STREAM) as connecting:
            connecting.settimeout(5)
            with pytest.raises(OSError, match=r"No route to host|unreachable"):
                connecting.connect((address, 9))
    with Capture(cluster, node) as capture:
        capture.tunnelled()
        assert not reaches(pair[0].namespace, "10.9.0.33", timeout=0.5)
        assert capture.tunnelled() == []


DAMAGE = [
    ["ip", "link", "delete", "contrail.0"],
    ["ip", "link", "set", "contrail.0", "down"],
    ["ip", "link", "set", "contrail.0", "address", "02:00:00:00:00:99"],
    ["ip", "link", "set", "contrail.0", "mtu", "1300"],
    ["ip", "address", "flush", "dev", "contrail.0"],
    ["ip", "neighbour", "flush", "dev", "contrail.0", "nud", "permanent"],
    ["bridge", "fdb", "delete", "0e:00:c0:00:02:02", "dev", "contrail.0", "self"],
    ["bridge", "fdb", "replace", "0e:00:c0:00:02:02", "dev", "contrail.0", "dst", "192.0.2.9", "self", "static"],
    ["ip", "route", "delete", "10.9.0.64/26"],
    ["ip", "route", "replace", "10.9.0.64/26", "via", "192.0.2.9", "dev", "contrail.0", "onlink", "proto", "67"],
    ["ip", "-6", "route", "delete", "fd09::40/122"],
    ["ip", "route", "delete", "unreachable", "10.9.0.0/26"],
    ["ip", "-6", "route", "delete", "unreachable", "fd09::/122"],
    ["sysctl", "-qw", "net.ipv6.conf.contrail/0.disable_ipv6=1"],
]


@pytest.mark.parametrize("damage", DAMAGE, ids=" ".join)
def test_what_was_changed_by_hand_is_repaired(cluster: Cluster, pair: Pair, damage: list[str]) -> None:
    node = pair[0].node
    before = objects(node)
    node.run(*damage)
    assert cluster.sync_index_0(networks_of(cluster))[0].changes[INDEX_0] > 0
    assert cluster.sync_index_0(networks_of(cluster))[0].changes[INDEX_0] == 0
    connected(pair)
    assert objects(node) == before


def test_a_node_that_is_gone_is_removed_only_when_the_list_has_been_complete_for_a_while(
    cluster: Cluster, pair: Pair
) -> None:
    node = pair[0].node
    before = objects(node)
    networks = networks_of(cluster)
    alone = {node: networks[node]._replace(remotes=(), is_complete=False)}
    cluster.sync_index_0(alone)
    cluster.clock.advance(2 * STALE_SECONDS)
    alone = {node: networks[node]._replace(remotes=())}
    cluster.sync_index_0(alone)
    assert objects(node) == before
    assert node.reconciler.has_stale
    cluster.clock.advance(STALE_SECONDS)
    cluster.sync_index_0(alone)
    assert "192.0.2.2" not in "".join(line for line in objects(node) if "contrail.0" in line)
    assert cluster.sync_index_0(alone)[0].changes[INDEX_0] == 0


def test_a_block_that_moves_between_nodes_is_replaced_in_place(cluster: Cluster, pair: Pair) -> None:
    third = cluster.add_node()
    node = pair[0].node
    networks = networks_of(cluster)
    moved = tuple(
        each._replace(tunnel=third.tunnel) if each.cidr == "10.9.0.64/26" else each for each in networks[node].remotes
    )
    cluster.sync_index_0({node: networks[node]._replace(remotes=moved)})
    assert f"10.9.0.64/26 via {third.tunnel} dev contrail.0" in node.run("ip", "route")
    cluster.sync_index_0(networks)
    connected(pair)


def test_a_route_of_another_program_is_a_problem_of_its_block_alone(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    node.run("ip", "route", "add", "10.9.4.0/26", "via", "192.0.2.2")
    network = networks_of(cluster)[node]
    network = network._replace(remotes=(*network.remotes, RemoteBlock("10.9.4.0/26", "192.0.2.2")))
    underlay = cluster.underlay(node)._replace(routed=network)
    assert "10.9.4.0/26" in node.reconcile([], underlay, None).problems[INDEX_0]
    again = node.reconcile([], underlay, None)
    assert "10.9.4.0/26" in again.problems[INDEX_0]
    assert again.changes[INDEX_0] == 0, "what cannot be changed counts as a repair"
    assert "10.9.4.0/26 via 192.0.2.2 dev eth0" in node.run("ip", "route")


def test_an_mtu_that_does_not_fit_the_underlay_is_a_problem(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    network = networks_of(cluster)[node]._replace(mtu=1460)
    outcome = node.reconcile([], cluster.underlay(node)._replace(routed=network))
    assert outcome.problems == {INDEX_0: "MTU 1460: packets to node 192.0.2.2 have room for 1450 bytes only"}


def test_packets_to_other_nodes_keep_the_pods_address(cluster: Cluster, pair: Pair) -> None:
    first, second = pair
    with Capture(cluster, first.node) as capture:
        capture.tunnelled()
        assert reaches(first.namespace, second.ipv4)
        assert all(bytes((10, 9, 0, 5, 10, 9, 0, 69)) in frame for frame in capture.tunnelled())


def test_a_purge_leaves_nothing(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    node.run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
    before = objects(node)
    pod = cluster.add_routed_pod(node, ("10.9.0.5", "fd09::5"))
    cluster.sync_index_0(networks_of(cluster))
    with node.namespace.inside():
        kept = purge(node.networks.namespaces, with_ports=False)
    assert kept.kept == {INDEX_0: (pod.port.link,)}
    assert "contrail.0" in node.run("ip", "link")
    node.run("ip", "link", "delete", pod.port.link)
    with node.namespace.inside():
        assert purge(node.networks.namespaces, with_ports=False).removed == {INDEX_0: ()}
    assert objects(node) == before


def objects(node: FabricNode) -> list[str]:
    """Everything in the node's namespace that index 0 may have, without what changes by itself."""
    commands = (
        ("ip", "-o", "-d", "link"),
        ("ip", "-o", "address"),
        ("ip", "route", "show", "table", "all"),
        ("ip", "-6", "route", "show", "table", "all"),
        ("ip", "neighbour", "show", "nud", "permanent"),
        ("bridge", "fdb", "show", "dynamic"),
        ("nft", "-s", "list", "ruleset"),
    )
    lines = "\n".join(node.run(*command) for command in commands).splitlines()
    return sorted(line.split(": ", 1)[-1] if line[:1].isdigit() else line for line in lines)
