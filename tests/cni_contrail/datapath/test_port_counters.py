"""Counters of the ports of a node: of its networks, and of index 0."""

from collections.abc import Iterator

import pytest

from cni_contrail.datapath import port_counters as module
from cni_contrail.datapath.desired import LocalPort, Network, Routed, RoutedPort
from cni_contrail.datapath.port_counters import port_counters
from tests.cni_contrail.datapath.conftest import Pod, VirtualNetwork
from tests.support.echo import reaches
from tests.support.netns import Netns

NOTHING_ROUTED = Routed((), None)


@pytest.fixture
def node() -> Iterator[Netns]:
    """The node's own namespace, with the host end `tap0`, and a link that is no port."""
    node = Netns("node")
    node.ip("link", "add", "tap0", "type", "veth", "peer", "name", "eth0")
    yield node
    node.delete()


def test_ports_of_networks_and_of_index_0_are_counted_and_no_other_link(
    node: Netns, network: VirtualNetwork, pair: tuple[Pod, Pod]
) -> None:
    routed = Routed((RoutedPort("tap0", "02:00:00:00:00:01", ("10.8.0.2",), ("10.8.0.1",)),), None)
    assert reaches(pair[0].namespace, pair[1].ipv4)
    with node.inside():
        found = port_counters(network.namespaces, [network.desired()], routed)
    assert {vni: sorted(counted) for vni, counted in found.items()} == {0: ["tap0"], network.vni: ["tap2", "tap3"]}
    assert found[0]["tap0"] == (0, 0, 0, 0)
    for counted in found[network.vni].values():  # an echo and its answer, and requests for the addresses
        assert min(counted.received_packets, counted.sent_packets) >= 2
        assert counted.received_bytes > 14 * counted.received_packets


def test_a_link_or_a_network_that_does_not_exist_is_left_out(node: Netns, network: VirtualNetwork) -> None:
    missing = LocalPort("tap9", "02:00:00:00:00:09", ("10.7.0.9",))
    wanted = [network.desired()._replace(ports=(missing,)), Network(1, 1500, (), (missing,))]
    with node.inside():
        assert port_counters(network.namespaces, wanted, NOTHING_ROUTED) == {}


def test_no_more_ports_are_counted_than_a_report_may_have(
    node: Netns, network: VirtualNetwork, pair: tuple[Pod, Pod], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_COUNTED", 1)
    with node.inside():
        found = port_counters(network.namespaces, [network.desired()], NOTHING_ROUTED)
    assert sorted(found[network.vni]) == [pair[0].port.link]
