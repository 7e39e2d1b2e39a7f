"""Networks that span nodes: pods on several nodes, as namespaces joined by a fabric."""

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from cni_contrail.datapath.desired import Network, RemoteBlock, RemoteEndpoint, Underlay
from cni_contrail.datapath.node_reconciler import INDEX_0, STALE_SECONDS
from cni_contrail.datapath.purge import purge
from cni_contrail.datapath.tunnel_names import BRIDGED
from tests.support import frames
from tests.support.echo import reaches
from tests.support.echo_stream import EchoStream
from tests.support.frames import PacketSocket
from tests.support.node_fabric import GATEWAYS, MTU, PORT, Capture, Cluster, FabricPod, cluster_of

RED, BLUE = 5_100_001, 5_100_002
Pair = tuple[FabricPod, FabricPod]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Two nodes."""
    with cluster_of(2) as found:
        yield found


@pytest.fixture
def pair(cluster: Cluster) -> Pair:
    """Two pods of one network, on both nodes."""
    return pair_of(cluster)


def pair_of(cluster: Cluster) -> Pair:
    pods = cluster.add_pod(cluster.nodes[0], RED, 2), cluster.add_pod(cluster.nodes[1], RED, 3)
    cluster.sync()
    return pods


def connected(pair: Pair) -> None:
    """Fails unless both pods reach each other in both families."""
    first, second = pair
    for address in second.port.addresses:
        assert reaches(first.namespace, address), address
    for address in first.port.addresses:
        assert reaches(second.namespace, address), address


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


def test_nothing_is_changed_where_all_is_as_desired(cluster: Cluster, pair: Pair) -> None:
    assert pair
    cluster.let_removals_begin()
    for outcome in cluster.sync():
        assert set(outcome.changes.values()) == {0}


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


DAMAGE = [
    ["ip", "link", "delete", "vx0"],
    ["ip", "link", "set", "vx0", "down"],
    ["ip", "link", "set", "vx0", "nomaster"],
    ["ip", "link", "set", "vx0", "mtu", "1300"],
    ["ip", "link", "set", "vx0", "address", "02:00:00:00:00:99"],
    ["ip", "link", "set", "vx0", "type", "vxlan", "learning"],
    ["bridge", "link", "set", "dev", "vx0", "learning", "on"],
    ["bridge", "link", "set", "dev", "vx0", "flood", "on"],
    ["bridge", "link", "set", "dev", "vx0", "mcast_flood", "on"],
    ["bridge", "link", "set", "dev", "vx0", "bcast_flood", "on"],
    ["bridge", "link", "set", "dev", "vx0", "neigh_suppress", "off"],
    ["bridge", "fdb", "delete", "02:00:00:00:00:03", "dev", "vx0", "self"],
    ["bridge", "fdb", "delete", "02:00:00:00:00:03", "dev", "vx0", "master"],
    ["bridge", "fdb", "replace", "02:00:00:00:00:03", "dev", "vx0", "dst", "192.0.2.77", "self", "static"],
    ["bridge", "fdb", "replace", "02:00:00:00:00:03", "dev", "tap2", "master", "static"],
    ["ip", "neighbour", "delete", "10.7.0.3", "dev", "br0"],
    ["ip", "neighbour", "replace", "fd07::3", "lladdr", "02:00:00:00:00:99", "dev", "br0"],
    ["ip", "link", "delete", "br0"],
    ["nft", "flush", "ruleset"],
]


@pytest.mark.parametrize("damage", DAMAGE, ids=" ".join)
def test_what_was_changed_by_hand_is_repaired(cluster: Cluster, pair: Pair, damage: list[str]) -> None:
    node = pair[0].node
    cluster.let_removals_begin()
    before = objects(cluster)
    node.networks.run(RED, *damage)
    assert cluster.sync()[0].changes[RED] > 0
    assert cluster.sync()[0].changes[RED] == 0
    connected(pair)
    assert objects(cluster) == before


@pytest.mark.parametrize(
    "attributes",
    [
        ["id", str(RED), "local", "192.0.2.1", "dstport", "4790", "nolearning"],
        ["id", str(BLUE), "local", "192.0.2.1", "dstport", "4789", "nolearning"],
        ["id", str(RED), "local", "2001:db8::1", "dstport", "4789", "nolearning"],
        ["id", str(RED), "local", "192.0.2.1", "dstport", "4789", "nolearning", "noudpcsum"],
    ],
    ids=["port", "VNI", "family", "checksums"],
)
def test_a_tunnel_that_cannot_be_changed_is_replaced(cluster: Cluster, pair: Pair, attributes: list[str]) -> None:
    node = pair[0].node
    before = objects(cluster)
    node.networks.run(RED, "ip", "link", "delete", "vx0")
    node.run("ip", "link", "add", "vx0", "type", "vxlan", *attributes)
    node.run("ip", "link", "set", "vx0", "netns", str(node.networks.namespaces.path(RED)))
    cluster.sync()
    connected(pair)
    assert objects(cluster) == before


def test_a_tunnel_whose_packets_stay_in_the_namespace_is_replaced(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    node.networks.run(RED, "ip", "link", "delete", "vx0")
    options = ("id", str(RED), "local", "192.0.2.1", "dstport", "4789", "nolearning")
    node.networks.run(RED, "ip", "link", "add", "vx0", "type", "vxlan", *options)
    cluster.sync()
    connected(pair)


def test_what_was_added_by_hand_is_removed(cluster: Cluster, pair: Pair) -> None:
    cluster.let_removals_begin()
    before = objects(cluster)
    run = pair[0].node.networks.run
    run(RED, "bridge", "fdb", "add", "02:00:00:00:00:77", "dev", "vx0", "dst", "192.0.2.2", "self", "master", "static")
    run(RED, "ip", "neighbour", "add", "10.7.0.77", "lladdr", "02:00:00:00:00:77", "nud", "permanent", "dev", "br0")
    assert cluster.sync()[0].changes[RED] == 3
    assert objects(cluster) == before


def test_a_changed_tunnel_address_is_followed(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    before = node.networks.run(RED, "ip", "-o", "link", "show", "vx0").split(":")[0]
    node.namespace.ip("address", "delete", f"{node.tunnel}/24", "dev", "eth0")
    node.namespace.ip("address", "add", "192.0.2.101/24", "dev", "eth0")
    node.addresses = ("192.0.2.101", *node.addresses[1:])
    cluster.sync()
    connected(pair)
    with Capture(cluster, node) as capture:
        capture.tunnelled()
        assert reaches(pair[0].namespace, pair[1].ipv4)
        assert all(socket.inet_aton("192.0.2.101") in frame[:34] for frame in capture.tunnelled())
    assert node.networks.run(RED, "ip", "-o", "link", "show", "vx0").split(":")[0] == before


def test_a_changed_tunnel_address_is_followed_while_the_node_keeps_the_old_one(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    assert reaches(pair[0].namespace, pair[1].ipv4)
    node.namespace.ip("address", "add", "192.0.2.101/24", "dev", "eth0")
    node.addresses = ("192.0.2.101", *node.addresses[1:])
    cluster.sync()
    with Capture(cluster, node) as capture:
        capture.tunnelled()
        assert reaches(pair[0].namespace, pair[1].ipv4)
        assert all(socket.inet_aton("192.0.2.101") in frame[:34] for frame in capture.tunnelled())


def test_a_stale_endpoint_is_removed_only_when_the_list_has_been_complete_for_a_while(
    cluster: Cluster, pair: Pair
) -> None:
    first, second = pair
    node = first.node
    cluster.let_removals_begin()
    cluster.remove_pod(second)
    incomplete = cluster.network(node, RED)._replace(is_complete=False)
    complete = incomplete._replace(is_complete=True)
    everything = node.networks.run(RED, "ip", "neighbour") + node.networks.run(RED, "bridge", "fdb")
    for network, waits in ((incomplete, 2 * STALE_SECONDS), (complete, STALE_SECONDS - 1)):
        assert node.reconcile([network], cluster.underlay(node)).changes[RED] == 0
        cluster.clock.advance(waits)
    assert node.reconciler.has_stale
    assert second.port.mac in everything
    cluster.clock.advance(1)
    node.reconcile([complete], cluster.underlay(node))
    everything = node.networks.run(RED, "ip", "neighbour") + node.networks.run(RED, "bridge", "fdb")
    assert second.port.mac not in everything
    assert second.ipv4 not in everything
    assert not node.reconciler.has_stale


def test_an_endpoint_moves_between_nodes_without_loss_beyond_the_move(cluster: Cluster, pair: Pair) -> None:
    third = cluster.add_node()
    cluster.let_removals_begin()
    observer, moving = pair
    other = cluster.add_pod(cluster.nodes[1], RED, 4)
    cluster.sync()
    stream, untouched = EchoStream(observer.namespace, moving.ipv4), EchoStream(observer.namespace, other.ipv4)
    with stream.running(), untouched.running():
        for _ in range(2):
            for node in (third, cluster.nodes[1]):
                successor = cluster.add_pod(node, RED, 3)
                cluster.pods.remove(moving)
                cluster.sync()
                assert reaches(observer.namespace, successor.ipv4)
                assert reaches(observer.namespace, successor.ipv6)
                moving.node.networks.run(RED, "ip", "link", "delete", moving.port.link)
                moving = successor
    assert untouched.lost() == 0, untouched.gaps()
    assert stream.lost() < stream.sent / 2, stream.gaps()


def test_an_endpoint_moves_to_this_node_and_away_again(cluster: Cluster, pair: Pair) -> None:
    observer, moving = pair
    here = cluster.add_pod(observer.node, RED, 3)
    cluster.sync()  # the other node still claims it
    assert reaches(observer.namespace, here.ipv4)
    cluster.remove_pod(moving)
    cluster.sync()
    assert reaches(observer.namespace, here.ipv6)
    cluster.remove_pod(here)
    again = cluster.add_pod(cluster.nodes[1], RED, 3)
    cluster.sync()
    connected((observer, again))


def test_a_port_that_an_add_is_creating_keeps_what_another_node_claims(cluster: Cluster, pair: Pair) -> None:
    observer, moving = pair
    node = observer.node
    here = cluster.add_pod(node, RED, 3)
    cluster.remove_pod(moving)
    cluster.sync()
    assert reaches(observer.namespace, here.ipv4)
    stale = cluster.network(node, RED)
    claim = RemoteEndpoint(here.port.mac, here.port.addresses, cluster.nodes[1].tunnel)
    stale = stale._replace(ports=(observer.port,), remotes=(claim,))
    assert node.reconcile([stale], cluster.underlay(node)).changes[RED] == 0
    assert reaches(observer.namespace, here.ipv4)


def test_a_resync_of_2000_endpoints_loses_no_packet(cluster: Cluster, pair: Pair) -> None:
    observer, other = pair
    node = observer.node
    network = cluster.network(node, RED)

    def with_endpoints(tunnel: str) -> Network:
        endpoints = (
            RemoteEndpoint(
                f"02:00:00:01:{number >> 8:02x}:{number & 255:02x}",
                (f"10.7.{1 + number // 250}.{1 + number % 250}", f"fd07::1:{number:x}"),
                tunnel,
            )
            for number in range(2000)
        )
        return network._replace(remotes=(*network.remotes, *endpoints))

    node.reconcile([with_endpoints("192.0.2.2")], cluster.underlay(node))
    cluster.clock.advance(STALE_SECONDS)
    stream = EchoStream(observer.namespace, other.ipv4)
    with stream.running():
        for tunnel in ("192.0.2.3", "192.0.2.2"):
            assert node.reconcile([with_endpoints(tunnel)], cluster.underlay(node)).changes[RED] == 2000
            assert node.reconcile([with_endpoints(tunnel)], cluster.underlay(node)).changes[RED] == 0
        assert node.reconcile([network], cluster.underlay(node)).changes[RED] >= 6000
        assert node.reconcile([with_endpoints("192.0.2.2")], cluster.underlay(node)).changes[RED] >= 6000
    assert stream.lost() == 0, stream.gaps()


def test_a_network_that_is_removed_can_be_made_again_at_once(cluster: Cluster, pair: Pair) -> None:
    first, second = pair
    node = first.node
    for pod in pair:
        cluster.remove_pod(pod)
    node.reconcile([], cluster.underlay(node))
    cluster.clock.advance(STALE_SECONDS)
    assert node.reconcile([], cluster.underlay(node)).removed == {RED}
    cluster.add_pod(node, RED, 2)
    cluster.add_pod(second.node, RED, 3)
    cluster.sync()
    connected((cluster.pods[0], cluster.pods[1]))


def test_a_namespace_that_was_deleted_by_hand_is_made_again_with_its_tunnel(cluster: Cluster, pair: Pair) -> None:
    node = pair[0].node
    node.networks.namespaces.delete(RED)
    cluster.pods.remove(pair[0])
    successor = cluster.add_pod(node, RED, 2)
    cluster.sync()
    connected((successor, pair[1]))


def test_a_vni_that_another_link_has_is_a_problem_of_its_network_which_works_on_its_node(cluster: Cluster) -> None:
    pods = [cluster.add_pod(node, vni, 2 + node.number) for node in cluster.nodes for vni in (RED, BLUE)]
    node = cluster.nodes[0]
    node.run("ip", "link", "add", "other", "type", "vxlan", "id", str(RED), "dstport", "4789")
    node.networks.run(RED, "ip", "address", "flush", "dev", "br0")
    outcome = node.reconcile([cluster.network(node, vni) for vni in (RED, BLUE)], cluster.underlay(node))
    assert set(outcome.problems) == {RED}
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


def test_packets_of_the_size_of_the_mtu_pass(cluster: Cluster, pair: Pair) -> None:
    first, second = pair
    assert cluster.mtu == MTU
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


def objects(cluster: Cluster) -> list[str]:
    """Everything in a network's namespace on all nodes, without indexes of links."""
    commands = (
        ("ip", "-o", "-d", "link", "show", "dev", "vx0"),
        ("ip", "-o", "address", "show", "dev", "br0"),
        ("bridge", "-d", "link", "show", "dev", "vx0"),
        ("bridge", "fdb", "show", "dev", "vx0"),
        ("ip", "neighbour", "show", "nud", "permanent"),
    )
    lines = [
        f"{node.number}: {line}"
        for node in cluster.nodes
        for command in commands
        for line in node.networks.run(RED, *command).splitlines()
    ]
    return sorted(re.sub(r"@\w+|\b\d+: (?=\w)|bridge_slave .*", "", line) for line in lines)
