"""Uplinks that somebody else changed, on the node or in the network's namespace, are repaired in one round."""

import contextlib
import re
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from cni_contrail.datapath.desired import Network
from tests.cni_contrail.datapath.uplinks.conftest import OUTSIDE, Pod, UplinkNode
from tests.cni_contrail.datapath.uplinks.test_uplinks import SUBNETS, addresses_of_uplinks, link_of, settled
from tests.support.echo import reaches

Uplink = tuple[Network, Pod]
_BEFORE_6_2 = "ip link set dev $0 down && ip link set dev $0 name renamed && ip link set dev renamed up"
RENAME = ["sh", "-c", f"ip link set dev $0 name renamed || {{ {_BEFORE_6_2}; }}"]
ON_NODE = [
    ["ip", "link", "delete", "LINK"],
    ["ip", "link", "set", "LINK", "down"],
    ["ip", "link", "set", "LINK", "mtu", "1300"],
    ["ip", "link", "set", "LINK", "mtu", "1000"],
    ["ip", "link", "set", "LINK", "address", "02:00:00:00:00:99"],
    [*RENAME, "LINK"],
    ["ip", "address", "flush", "dev", "LINK"],
    ["ip", "address", "add", "10.99.0.1/24", "dev", "LINK"],
    ["sh", "-c", "ip address flush dev LINK && ip address add fd4b:9c62:7ea1:fab0::/64 dev LINK nodad"],
    ["ip", "route", "delete", "10.7.0.0/24"],
    ["ip", "route", "add", "10.98.0.0/24", "via", "GATEWAY"],
    ["sysctl", "-w", "net.ipv4.ip_forward=0"],
    ["sysctl", "-w", "net.ipv6.conf.all.forwarding=0"],
    ["sysctl", "-w", "net.ipv6.conf.LINK.disable_ipv6=1"],
    ["sysctl", "-w", "net.ipv4.conf.LINK.forwarding=0"],
    ["nft", "flush", "ruleset"],
    ["nft", "flush", "chain", "inet", "contrail-uplink", "between_links"],
]
ALIAS = ["ip", "link", "set", "LINK", "alias", "other"]
"""Not together with another name: what has neither is taken for another program's."""

IN_NETWORK = [
    ["ip", "link", "delete", "dev", "up"],
    ["ip", "link", "set", "dev", "up", "down"],
    ["ip", "link", "set", "dev", "up", "mtu", "1300"],
    ["ip", "link", "set", "dev", "up", "mtu", "1000"],
    [*RENAME, "up"],
    ["ip", "address", "flush", "dev", "up"],
    ["ip", "route", "delete", "default"],
    ["ip", "route", "replace", "default", "dev", "br0"],
    ["ip", "-6", "route", "replace", "default", "dev", "br0"],
    ["ip", "-6", "route", "delete", "default"],
    ["ip", "route", "add", "blackhole", "192.0.2.0/24"],
    ["ip", "-6", "route", "add", "unreachable", "default", "metric", "1"],
    ["sysctl", "-w", "net.ipv4.ip_forward=0"],
    ["sysctl", "-w", "net.ipv6.conf.all.forwarding=0"],
    ["sysctl", "-w", "net.ipv6.conf.up.disable_ipv6=1"],
    ["nft", "flush", "ruleset"],
    ["nft", "delete", "table", "inet", "contrail-uplink"],
]


@pytest.fixture
def uplink(node: UplinkNode) -> Uplink:
    """A network with an uplink, and a pod that reaches the outside and is reached from there."""
    network, pod = node.add_pod(node.network(snat=True, forwarding=True))
    settled(node, network)
    node.route_outside(*SUBNETS)
    return network, pod


def connected(node: UplinkNode, pod: Pod) -> None:
    """Fails unless the pod and the outside reach each other in both families."""
    for address in OUTSIDE:
        assert reaches(pod.namespace, address), address
    for address in (pod.ipv4, pod.ipv6):
        assert reaches(node.outside, address), address


def damaged_on_node(node: UplinkNode, network: Network) -> Callable[[list[str]], None]:
    """Returns what changes something on the node."""
    gateway = addresses_of_uplinks(node, network)[-1]

    def damage(command: list[str]) -> None:
        node.run(*(each.replace("LINK", link_of(network)).replace("GATEWAY", gateway) for each in command))

    return damage


def objects(node: UplinkNode, network: Network) -> list[str]:
    """What both ends of an uplink have, and their rules, without indexes of links."""
    commands = (
        ("ip", "-o", "address"),
        ("ip", "route"),
        ("ip", "-6", "route"),
        ("nft", "-s", "list", "ruleset"),
        ("sysctl", "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"),
    )
    on_node = "\n".join(node.run(*command) for command in commands)
    in_network = "\n".join(node.networks.run(network.vni, *command) for command in commands)
    lines = f"{on_node}\n{in_network}\n{node.run('ip', '-o', 'link', 'show', link_of(network))}".splitlines()
    kept = [line for line in lines if "fe80::" not in line or "fe80::1/" in line]  # others are the kernel's own
    return sorted(re.sub(r"^\d+: |@if\d+|link-netnsid \d+|link/ether .*brd|qlen \d+", "", line) for line in kept)


@pytest.mark.parametrize("damage", [*ON_NODE, ALIAS], ids=" ".join)
def test_what_was_changed_on_the_node_is_repaired(node: UplinkNode, uplink: Uplink, damage: list[str]) -> None:
    network, pod = uplink
    before = objects(node, network)
    damaged_on_node(node, network)(damage)
    assert sum(node.reconcile(network).changes.values()) > 0
    settled(node, network)
    connected(node, pod)
    assert objects(node, network) == before


@pytest.mark.parametrize("damage", IN_NETWORK, ids=" ".join)
def test_what_was_changed_in_the_namespace_is_repaired(node: UplinkNode, uplink: Uplink, damage: list[str]) -> None:
    network, pod = uplink
    before = objects(node, network)
    node.networks.run(network.vni, *damage)
    assert sum(node.reconcile(network).changes.values()) > 0
    settled(node, network)
    connected(node, pod)
    assert objects(node, network) == before


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    on_node=some.lists(some.sampled_from(ON_NODE), max_size=6),
    within=some.lists(some.sampled_from(IN_NETWORK), max_size=6),
)
def test_any_sequence_of_changes_by_hand_is_repaired(
    node: UplinkNode, uplink: Uplink, on_node: list[list[str]], within: list[list[str]]
) -> None:
    network, pod = uplink
    before = objects(node, network)
    damage = damaged_on_node(node, network)
    for command in on_node:
        with contextlib.suppress(AssertionError):  # what it changes may be gone by now
            damage(command)
    for command in within:
        with contextlib.suppress(subprocess.CalledProcessError):
            node.networks.run(network.vni, *command)
    assert not node.reconcile(network).problems
    assert set(node.reconcile(network).changes.values()) == {0}
    connected(node, pod)
    assert objects(node, network) == before
