"""Endpoints of other nodes that move, go or are read again: what did not change loses no packet."""

from cni_contrail.datapath.desired import Network, RemoteEndpoint
from cni_contrail.datapath.node_reconciler import STALE_SECONDS
from tests.cni_contrail.datapath.tunnels.conftest import RED, Pair, connected
from tests.support.echo import reaches
from tests.support.echo_stream import EchoStream
from tests.support.node_fabric import Cluster


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
                # ADD is answered only then. Replies that wait for ARP would fill the send buffer of ICMP, which all
                # namespaces share.
                node.reconcile([cluster.network(node, RED)], cluster.underlay(node))
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
