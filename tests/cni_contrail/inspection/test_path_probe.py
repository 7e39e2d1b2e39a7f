"""Probes of the way between nodes: all packets pass, short ones, or none; with and without CAP_NET_RAW."""

from collections.abc import Iterator

import pytest

from cni_contrail.inspection.path_probe import Passage, Way, probe
from cni_contrail.link.errors import LinkError
from tests.support.node_fabric import Cluster, FabricNode, cluster_of

FITS = 1430
"""MTU of pods whose tunnelled packets have 1480 bytes by IPv4, and 1500 by IPv6."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with cluster_of(2) as found:
        yield found


def ways(cluster: Cluster, mtu: int = FITS) -> list[Way]:
    first, second = cluster.nodes
    return [Way(local, peer, mtu) for local, peer in zip(first.addresses, second.addresses, strict=True)]


def probed(node: FabricNode, wanted: list[Way]) -> list[Passage]:
    with node.namespace.inside():
        found = probe(wanted, timeout=20)
    return [found[way] for way in wanted]


def test_everything_passes_in_both_families(cluster: Cluster) -> None:
    assert [way.length for way in ways(cluster)] == [1480, 1500]
    assert probed(cluster.nodes[0], ways(cluster)) == [Passage.EVERYTHING] * 2


def test_a_permitted_datagram_socket_does_as_well(cluster: Cluster) -> None:
    cluster.nodes[0].run("sysctl", "-qw", "net.ipv4.ping_group_range=0 2147483647")
    assert probed(cluster.nodes[0], ways(cluster)) == [Passage.EVERYTHING] * 2


def test_a_fabric_that_drops_long_packets_silently_lets_short_ones_pass(cluster: Cluster) -> None:
    cluster.fabric.ip("link", "set", "node2", "mtu", "1470")
    assert probed(cluster.nodes[0], ways(cluster)) == [Passage.SHORT_PACKETS] * 2


def test_a_link_that_is_too_narrow_lets_short_packets_pass(cluster: Cluster) -> None:
    assert probed(cluster.nodes[0], ways(cluster, FITS + 100)) == [Passage.SHORT_PACKETS] * 2


def test_a_node_that_is_gone_lets_nothing_pass(cluster: Cluster) -> None:
    cluster.fabric.ip("link", "set", "node2", "down")
    assert probed(cluster.nodes[0], ways(cluster)) == [Passage.NOTHING] * 2


def test_of_many_ways_each_has_its_own_answer(cluster: Cluster) -> None:
    (ipv4, ipv6), (own, _) = ways(cluster), cluster.nodes[0].addresses
    nowhere = [Way(own, f"192.0.2.{number}", FITS) for number in range(100, 140)]
    found = probed(cluster.nodes[0], [ipv4, *nowhere, ipv6])
    assert found == [Passage.EVERYTHING, *[Passage.NOTHING] * len(nowhere), Passage.EVERYTHING]


def test_ways_for_which_no_time_is_left_have_no_answer(cluster: Cluster) -> None:
    with cluster.nodes[0].namespace.inside():
        assert probe(ways(cluster), timeout=0) == {}


def test_a_tunnel_address_that_the_node_does_not_have_is_an_error(cluster: Cluster) -> None:
    with (
        cluster.nodes[0].namespace.inside(),
        pytest.raises(LinkError, match=r"address 192\.0\.2\.77 of this node: cannot"),
    ):
        probe([Way("192.0.2.77", "192.0.2.2", FITS)], timeout=20)
