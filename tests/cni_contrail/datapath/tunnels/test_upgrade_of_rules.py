"""Upgrade across nodes: another release replaces the rules of all tables while packets pass, and no packet is lost."""

import re
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from cni_contrail.datapath.desired import Masquerade, Network, Routed, Underlay
from tests.cni_contrail.datapath.tunnels.conftest import RED
from tests.cni_contrail.datapath.tunnels.test_routed_blocks import networks_of
from tests.support.echo import reaches
from tests.support.echo_stream import EchoStream
from tests.support.node_fabric import GATEWAYS, Cluster, FabricNode
from tests.support.other_rules import reconcile_by_other_release

_RELEASES = 5
_INTERVAL = 0.002  # seconds between the packets of one stream
_RULE = re.compile(r'comment "(.+ [0-9a-f]{12})"')


class State(NamedTuple):
    """The desired state of a node: arguments of its reconciler."""

    networks: list[Network]
    routed: Routed
    underlay: Underlay


def state_of(cluster: Cluster, node: FabricNode) -> State:
    """A network with an uplink, and index 0 with masquerade: what needs all tables."""
    network = cluster.network(node, RED)._replace(snat=True)
    routed = cluster.routed(node)._replace(masquerade=Masquerade(("10.9.0.0/16", "fd09::/64")))
    return State([network], routed, cluster.underlay(node)._replace(routed=networks_of(cluster)[node]))


def rules_of(node: FabricNode) -> dict[str, set[str]]:
    """The rules of each table of the node, and of those in the network's namespace, with their digests."""
    found = {}
    for place, text in (
        ("node", node.run("nft", "list", "ruleset")),
        ("network", node.networks.run(RED, "nft", "list", "ruleset")),
    ):
        for table in text.split("\ntable ")[0:]:
            found[f"{place}: {table.removeprefix('table ').partition(' {')[0]}"] = set(_RULE.findall(table))
    return found


@pytest.fixture
def streams(cluster: Cluster) -> list[EchoStream]:
    """Packets between pods of two nodes, in a network and at index 0, and to the outside; all nodes are programmed."""
    red = [cluster.add_pod(node, RED, 1 + node.number) for node in cluster.nodes]
    index_0 = [
        cluster.add_routed_pod(cluster.nodes[0], ("10.9.0.5", "fd09::5")),
        cluster.add_routed_pod(cluster.nodes[1], ("10.9.0.69", "fd09::45")),
    ]
    for node in cluster.nodes:
        assert node.reconcile(*_in_order(state_of(cluster, node))).problems == {}
    outside = cluster.nodes[1].tunnel
    red[0].namespace.ip("route", "add", "default", "via", GATEWAYS[0].address)
    ways = [(source.namespace, address) for source, other in (red, index_0) for address in other.port.addresses]
    ways.append((red[0].namespace, outside))
    for namespace, address in ways:
        assert reaches(namespace, address), address
    return [EchoStream(namespace, address, interval=_INTERVAL) for namespace, address in ways]


def _in_order(state: State) -> tuple[list[Network], Underlay, Routed]:
    return state.networks, state.underlay, state.routed


def test_no_packet_is_lost_while_other_releases_replace_all_rules(cluster: Cluster, streams: list[EchoStream]) -> None:
    with ExitStack() as stack:
        for stream in streams:
            stack.enter_context(stream.running())
        for release in map(str, range(_RELEASES)):
            for node in cluster.nodes:
                before = rules_of(node)
                outcome = reconcile_by_other_release(node, release, *state_of(cluster, node))
                assert outcome.problems == {}
                after = rules_of(node)
                assert after.keys() == before.keys()
                assert not [table for table, rules in after.items() if not rules or rules & before[table]]
        for node in cluster.nodes:  # and back to this release
            assert node.reconcile(*_in_order(state_of(cluster, node))).problems == {}
    assert [(stream.lost(), stream.gaps()) for stream in streams if stream.lost()] == []
    assert all(stream.sent > 100 for stream in streams)
