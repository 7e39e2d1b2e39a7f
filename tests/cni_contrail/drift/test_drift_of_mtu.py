"""An MTU that another program lowers, so that packets of full size are lost, is repaired as soon as it is notified."""

from collections import Counter
from collections.abc import Iterator

import pytest

from cni_contrail.datapath.desired import Network, RoutedPort
from tests.cni_contrail.drift.conftest import MTU, PORT, REMOTE, UNDERLAY, WatchedNode, settle
from tests.support.netns import Netns

LOWER = pytest.mark.parametrize("lowered", [1300, 1000])
"""The second one is below 1280 bytes, with which a link loses IPv6 and all that it has of it."""

_LOW = MTU - 100


@pytest.fixture
def pod() -> Iterator[Netns]:
    sandbox = Netns("pod")
    yield sandbox
    sandbox.delete()


def set_mtu(node: WatchedNode, vni: int, link: str, mtu: int) -> None:
    node.run(vni, "ip", "link", "set", "dev", link, "mtu", str(mtu))


def mtu_of(node: WatchedNode, vni: int, link: str) -> int:
    words = node.run(vni, "ip", "-o", "link", "show", "dev", link).split()
    return int(words[words.index("mtu") + 1])


def attached(node: WatchedNode, pod: Netns) -> Network:
    """A network with a port whose other end is in a pod."""
    empty = node.network()
    node.desire(empty)
    mtu = ("mtu", str(MTU))
    peer = ("type", "veth", "peer", "name", "eth1", *mtu, "netns", pod.name)
    node.run(empty.vni, "ip", "link", "add", PORT.link, *mtu, "up", *peer)
    pod.ip("link", "set", "eth1", "up")
    network = empty._replace(ports=(PORT._replace(mtu=MTU),))
    node.desire(network)
    settle(node)
    return network


@LOWER
def test_the_mtu_of_a_host_end_is_raised_again(node: WatchedNode, pod: Netns, lowered: int) -> None:
    network = attached(node, pod)
    before = node.objects(network.vni)
    set_mtu(node, network.vni, PORT.link, lowered)
    assert "port" in node.await_repair(network.vni)
    assert mtu_of(node, network.vni, PORT.link) == MTU
    assert node.objects(network.vni) == before
    assert_nothing_is_left_to_repair(node)


@LOWER
def test_the_mtu_of_a_host_end_of_index_0_is_raised_again(node: WatchedNode, routed: RoutedPort, lowered: int) -> None:
    mtu = mtu_of(node, 0, routed.link)
    node.desire(routed=(routed._replace(mtu=mtu),))
    settle(node)
    before = node.objects(0)
    set_mtu(node, 0, routed.link, lowered)
    assert "port" in node.await_repair(0)
    assert mtu_of(node, 0, routed.link) == mtu
    assert node.objects(0) == before
    assert_nothing_is_left_to_repair(node)


def test_it_counts_as_a_repair_of_a_port(node: WatchedNode, pod: Netns) -> None:
    network = attached(node, pod)
    before = node.program.unreported
    set_mtu(node, network.vni, PORT.link, _LOW)
    node.await_repair(network.vni)
    assert node.program.unreported.repaired == before.repaired + 1
    assert Counter(node.program.unreported.repairs) - Counter(before.repairs) == {"port": 1}


def test_a_host_end_has_the_mtu_of_the_pods_end_if_a_plugin_has_lowered_that(node: WatchedNode, pod: Netns) -> None:
    network = attached(node, pod)
    pod.ip("link", "set", "eth1", "mtu", str(_LOW))
    set_mtu(node, network.vni, PORT.link, _LOW)
    assert not node.program.repair()
    assert_nothing_is_left_to_repair(node)
    set_mtu(node, network.vni, PORT.link, _LOW - 1)
    node.clock.advance(3600)
    assert "port" in node.await_repair(network.vni)
    assert mtu_of(node, network.vni, PORT.link) == _LOW
    assert_nothing_is_left_to_repair(node)


def test_a_pod_that_raises_its_mtu_changes_nothing_of_the_node(node: WatchedNode, pod: Netns) -> None:
    network = attached(node, pod)
    pod.ip("link", "set", "eth1", "mtu", "9000")
    set_mtu(node, network.vni, PORT.link, _LOW)
    node.await_repair(network.vni)
    assert mtu_of(node, network.vni, PORT.link) == MTU
    assert_nothing_is_left_to_repair(node)


def test_a_higher_mtu_of_a_host_end_stays(node: WatchedNode, pod: Netns) -> None:
    network = attached(node, pod)
    set_mtu(node, network.vni, PORT.link, 9000)
    assert not node.program.repair()
    assert_nothing_is_left_to_repair(node)
    assert mtu_of(node, network.vni, PORT.link) == 9000


def test_a_port_whose_mtu_the_agent_does_not_serve_stays_as_it_is(node: WatchedNode, network: Network) -> None:
    assert PORT.mtu == 0
    set_mtu(node, network.vni, PORT.link, _LOW)
    assert not node.program.repair()
    assert_nothing_is_left_to_repair(node)


@LOWER
def test_the_mtu_of_a_bridge_and_its_tunnel_is_set_again(node: WatchedNode, lowered: int) -> None:
    node.add_fabric()
    network = node.network()._replace(remotes=(REMOTE,))
    node.desire(network, underlay=UNDERLAY)
    settle(node)
    before = node.objects(network.vni)
    for link, kind in (("br0", "bridge"), ("vx0", "tunnel")):
        set_mtu(node, network.vni, link, lowered)
        assert kind in node.await_repair(network.vni)
        assert mtu_of(node, network.vni, link) == MTU
        assert node.objects(network.vni) == before
        assert_nothing_is_left_to_repair(node)
        node.clock.advance(3600)


@LOWER
def test_the_mtu_of_the_tunnel_of_index_0_is_set_again(node: WatchedNode, lowered: int) -> None:
    node.add_fabric()
    node.desire(underlay=UNDERLAY)
    settle(node)
    before, mtu = node.objects(0), mtu_of(node, 0, "contrail.0")
    set_mtu(node, 0, "contrail.0", lowered)
    assert "tunnel" in node.await_repair(0)
    assert mtu_of(node, 0, "contrail.0") == mtu
    assert node.objects(0) == before
    assert_nothing_is_left_to_repair(node)


@LOWER
def test_the_mtu_of_both_ends_of_an_uplink_is_set_again(node: WatchedNode, lowered: int) -> None:
    network = node.network(snat=True)
    node.desire(network)
    settle(node)
    on_node = f"ctup-{network.vni}"
    before = node.objects(0), node.objects(network.vni)
    for vni, link in ((0, on_node), (network.vni, "up")):
        set_mtu(node, vni, link, lowered)
        assert "uplink" in node.await_repair(network.vni)
        assert mtu_of(node, vni, link) == MTU
        assert (node.objects(0), node.objects(network.vni)) == before
        assert_nothing_is_left_to_repair(node)
        node.clock.advance(3600)


def assert_nothing_is_left_to_repair(node: WatchedNode) -> None:
    """Fails if an audit of everything finds something."""
    node.log.lines.clear()
    node.program.audit()
    assert node.log.lines == []
