"""The filter of tunnel packets: those of known nodes pass, others are dropped and counted."""

import socket
import struct
from collections.abc import Callable, Iterator

import pytest

from cni_contrail.datapath.desired import Masquerade, Routed
from cni_contrail.datapath.missing_modules import open_filters
from cni_contrail.datapath.node_outcome import INDEX_0, NodeOutcome
from cni_contrail.datapath.node_reconciler import STALE_SECONDS
from cni_contrail.datapath.tunnel_filter import accept_nodes, forget_nodes, read_filter
from tests.support import frames
from tests.support.echo import reaches
from tests.support.echo_stream import EchoStream
from tests.support.frames import PacketSocket
from tests.support.kernel_state import link
from tests.support.netns import Netns
from tests.support.node_fabric import PORT, Cluster, FabricPod, cluster_of

RED = 5_200_001
STRANGER = {4: "192.0.2.99", 6: "2001:db8::99"}
SECOND = {4: "192.0.2.98", 6: "2001:db8::98"}
"""Another address of a node, such as one that moves between nodes."""

STRANGER_MAC = "02:00:00:00:99:99"
MARK, LAST = b"a forged packet", b"the last packet"
Pair = tuple[FabricPod, FabricPod]


@pytest.fixture(params=[4, 6], ids=["IPv4", "IPv6"])
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def cluster(version: int) -> Iterator[Cluster]:
    with cluster_of(2, (0,) if version == 4 else (1,)) as found:
        yield found


@pytest.fixture
def pair(cluster: Cluster) -> Pair:
    pods = cluster.add_pod(cluster.nodes[0], RED, 2), cluster.add_pod(cluster.nodes[1], RED, 3)
    cluster.sync()
    return pods


@pytest.fixture
def stranger(cluster: Cluster, version: int) -> Iterator[PacketSocket]:
    """A host on the fabric that is no node."""
    host = Netns("stranger")
    cluster.attach(host, "stranger")
    host.ip("link", "set", "eth0", "address", STRANGER_MAC)
    host.ip("address", "add", f"{STRANGER[version]}/{24 if version == 4 else 64}", "dev", "eth0")
    assert reaches(host, cluster.nodes[1].tunnel)
    wire = PacketSocket(host, "eth0")
    yield wire
    wire.close()
    host.delete()


def test_packets_with_a_forged_outer_source_are_dropped_and_counted(
    cluster: Cluster, pair: Pair, stranger: PacketSocket, version: int
) -> None:
    sender, victim = pair
    wire = PacketSocket(victim.namespace, "eth0")
    try:
        before = dropped(cluster)
        for _ in range(3):
            stranger.send(tunnelled(pair, STRANGER[version], MARK))
        stranger.send(tunnelled(pair, sender.node.tunnel, LAST))  # a known source passes, whoever sends it
        assert not any(MARK in frame for frame in wire.received_until(LAST))
    finally:
        wire.close()
    assert dropped(cluster) == before + 3


def test_other_ports_are_open_to_all(cluster: Cluster, pair: Pair, stranger: PacketSocket, version: int) -> None:
    before = dropped(cluster)
    stranger.send(tunnelled(pair, STRANGER[version], MARK, port=PORT + 1))
    stranger.send(tunnelled(pair, STRANGER[version], MARK))
    wire = PacketSocket(pair[1].namespace, "eth0")
    try:
        stranger.send(tunnelled(pair, pair[0].node.tunnel, LAST))
        wire.received_until(LAST)
    finally:
        wire.close()
    assert dropped(cluster) == before + 1


@pytest.mark.parametrize(
    "damage",
    [
        ["nft", "flush", "ruleset"],
        ["nft", "flush", "chain", "inet", "contrail-tunnels", "from_nodes"],
        ["nft", "insert", "rule", "inet", "contrail-tunnels", "from_nodes", "accept"],
        ["nft", "flush", "set", "inet", "contrail-tunnels", "ipv4"],
        ["nft", "flush", "set", "inet", "contrail-tunnels", "ipv6"],
    ],
    ids=" ".join,
)
def test_what_was_changed_by_hand_is_repaired(cluster: Cluster, pair: Pair, damage: list[str]) -> None:
    node = pair[1].node
    before = node.run("nft", "-s", "list", "ruleset")
    node.run(*damage)
    cluster.sync()
    assert node.run("nft", "-s", "list", "ruleset") == before
    assert reconciled(cluster).changes[INDEX_0] == 0


def test_the_filter_is_replaced_without_loss(cluster: Cluster, pair: Pair) -> None:
    stream = EchoStream(pair[0].namespace, pair[1].ipv4)
    with stream.running():
        for _ in range(20):
            pair[1].node.run("nft", "add", "rule", "inet", "contrail-tunnels", "from_nodes", "accept")
            assert reconciled(cluster).changes[INDEX_0] == 1
    assert stream.lost() == 0, stream.gaps()


def test_thousands_of_nodes_are_accepted_at_once(make_netns: Callable[[str], Netns]) -> None:
    """More than one message of nf_tables can name, and more than a socket sends at once by default."""
    numbers = range(1, 6001)
    nodes = frozenset([f"10.{each >> 8}.{each & 255}.1" for each in numbers] + [f"fd00::{each:x}" for each in numbers])
    with make_netns("node").inside():
        assert accept_nodes(nodes, PORT).changes == len(nodes) + 1
        assert accept_nodes(nodes, PORT).changes == 0
        assert forget_nodes(nodes) == len(nodes)
        with open_filters() as filters:
            assert read_filter(filters).nodes == frozenset()


def test_nodes_that_are_gone_are_accepted_until_the_list_has_been_complete_for_a_while(
    cluster: Cluster, pair: Pair
) -> None:
    node = pair[1].node
    underlay = cluster.underlay(node)
    more = underlay._replace(peers=underlay.peers | {STRANGER[6 if ":" in underlay.addresses[0] else 4]})
    network = cluster.network(node, RED)
    node.reconcile([network], more)
    listed = node.run("nft", "list", "ruleset")
    assert any(address in listed for address in STRANGER.values())
    node.reconcile([network._replace(is_complete=False)], underlay)
    cluster.clock.advance(2 * STALE_SECONDS)
    node.reconcile([network], underlay)
    assert any(address in node.run("nft", "list", "ruleset") for address in STRANGER.values())
    cluster.clock.advance(STALE_SECONDS)
    node.reconcile([network], underlay)
    assert not any(address in node.run("nft", "list", "ruleset") for address in STRANGER.values())


@pytest.mark.parametrize("is_tunnel_address", [True, False], ids=["to the tunnel address", "to another address"])
def test_a_pod_cannot_send_tunnel_packets_in_the_name_of_its_node(
    cluster: Cluster, pair: Pair, version: int, *, is_tunnel_address: bool
) -> None:
    sender, victim = pair
    target = victim.node.tunnel if is_tunnel_address else SECOND[version]
    if not is_tunnel_address:
        victim.node.run("ip", "address", "add", f"{target}/{24 if version == 4 else 64}", "dev", "eth0", "nodad")
        assert reaches(sender.node.namespace, target)
    attacker = cluster.add_routed_pod(sender.node, ("10.9.0.10", "fd09::10"))
    masquerade = Masquerade(("10.9.0.0/16", "fd09::/64"))
    network, underlay = cluster.network(sender.node, RED), cluster.underlay(sender.node)
    assert not sender.node.reconcile([network], underlay, Routed((attacker.port,), masquerade)).problems
    with attacker.namespace.inside():
        datagrams = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6, socket.SOCK_DGRAM)
    wire = PacketSocket(victim.namespace, "eth0")
    try:
        with datagrams:
            for port, payload in ((PORT, MARK), (PORT + 1, LAST)):
                datagrams.sendto(encapsulated(pair, payload), (target, port))
        assert reaches(sender.namespace, victim.ipv4)
        assert not any(MARK in frame for frame in wire.received())
    finally:
        wire.close()
    where_it_runs = sender.node.reconcile([network], underlay, Routed((attacker.port,), masquerade)).drops[INDEX_0]
    where_it_arrives = victim.node.reconcile([cluster.network(victim.node, RED)], cluster.underlay(victim.node))
    dropped = where_it_runs.tunnel, where_it_arrives.drops[INDEX_0].tunnel
    assert dropped == ((1, 0) if is_tunnel_address else (0, 1))


def reconciled(cluster: Cluster) -> NodeOutcome:
    return cluster.sync()[1]


def dropped(cluster: Cluster) -> int:
    """Packets that the second node has dropped."""
    return reconciled(cluster).drops[INDEX_0].tunnel


def tunnelled(pair: Pair, source: str, payload: bytes, port: int = PORT) -> bytes:
    """A frame to the second node, in a packet from this source, with a packet from the first pod to the second."""
    victim = pair[1]
    body = encapsulated(pair, payload)
    datagram = struct.pack("!HHHH", 40000, port, 8 + len(body), 0) + body
    mac = link(victim.node.namespace, "eth0")["address"]
    if ":" in source:
        datagram = frames.with_udp_checksum(source, victim.node.tunnel, datagram)
        outer = frames.ipv6(source, victim.node.tunnel, frames.UDP, datagram)
        return frames.ethernet(STRANGER_MAC, mac, frames.IPV6, outer)
    return frames.ethernet(STRANGER_MAC, mac, frames.IPV4, frames.ipv4(source, victim.node.tunnel, datagram))


def encapsulated(pair: Pair, payload: bytes) -> bytes:
    """The payload of a tunnel packet (RFC 7348, section 5): a packet from the first pod to the second."""
    packet = frames.ipv4(pair[0].ipv4, pair[1].ipv4, frames.udp(payload))
    inner = frames.ethernet(pair[0].port.mac, pair[1].port.mac, frames.IPV4, packet)
    return struct.pack("!II", 0x08000000, RED << 8) + inner
