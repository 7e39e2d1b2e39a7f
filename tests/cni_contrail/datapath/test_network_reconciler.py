"""Tests of the reconciler of one network: real namespaces, bridge and filter."""

import contextlib
import re
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from cni_contrail.datapath import filter_rules
from cni_contrail.datapath import nftables_messages as nft
from cni_contrail.datapath.desired import GATEWAY_MAC, LocalPort, Network
from cni_contrail.datapath.filter_rules import create_filter
from cni_contrail.datapath.network_reconciler import reconcile_network
from cni_contrail.datapath.nftables_socket import NftablesSocket
from cni_contrail.link.bridge_port import BRIDGE
from cni_contrail.link.errors import LinkError
from cni_contrail.link.message import attribute
from cni_contrail.link.netns import InNetns
from cni_contrail.link.plan import Address
from tests.cni_contrail.conftest import until
from tests.cni_contrail.datapath.conftest import GATEWAYS, MTU, Pod, VirtualNetwork
from tests.support.echo import reaches

Pair = tuple[Pod, Pod]
DROPPING = "{ type filter hook prerouting priority -300 ; policy drop ; }"
DROPPING_FROM_TAP2 = "{ type filter hook ingress device tap2 priority 0 ; policy drop ; }"


def test_pods_of_a_network_reach_each_other_and_the_gateway_in_both_families(pair: Pair) -> None:
    first, second = pair
    assert reaches(first.namespace, second.ipv4)
    assert reaches(first.namespace, second.ipv6)
    assert reaches(second.namespace, first.ipv4)
    for gateway in GATEWAYS:
        assert reaches(first.namespace, gateway.address)


def test_networks_with_equal_addresses_and_macs_do_not_meet(make_network: Callable[[], VirtualNetwork]) -> None:
    red, blue = make_network(), make_network()
    red_pods = red.add_pod(2), red.add_pod(3)
    blue_pod = blue.add_pod(2)
    red.reconcile()
    blue.reconcile()
    assert reaches(red_pods[0].namespace, red_pods[1].ipv4)
    assert reaches(blue_pod.namespace, GATEWAYS[0].address)
    assert not reaches(blue_pod.namespace, red_pods[1].ipv4, timeout=1)
    assert not reaches(blue_pod.namespace, red_pods[1].ipv6, timeout=1)


@pytest.mark.parametrize("mtu", [1450, 1500])
def test_the_mtu_of_the_bridge_does_not_follow_that_of_a_port(network: VirtualNetwork, mtu: int) -> None:
    pod = network.add_pod(2)
    network.ip("link", "delete", BRIDGE)
    desired = network.desired()._replace(mtu=mtu)
    reconcile_network(network.netns, desired)
    network.ip("link", "set", pod.port.link, "mtu", "1300")
    assert reconcile_network(network.netns, desired).changes == 0


def test_a_network_of_ipv4_may_have_an_mtu_that_ipv6_does_not_allow(network: VirtualNetwork) -> None:
    first, second = network.add_pod(2), network.add_pod(3)
    ports = tuple(pod.port._replace(addresses=(pod.ipv4,)) for pod in (first, second))
    desired = network.desired()._replace(gateways=GATEWAYS[:1], ports=ports, mtu=1000)
    for _ in range(2):
        outcome = reconcile_network(network.netns, desired)
    assert (outcome.problem, outcome.changes) == (None, 0)
    assert reaches(first.namespace, second.ipv4)
    assert reaches(first.namespace, GATEWAYS[0].address)


def test_a_port_that_is_not_connected_is_mute(network: VirtualNetwork, pair: Pair) -> None:
    stranger = network.add_pod(4)
    network.pods.remove(stranger)
    network.ip("link", "set", stranger.port.link, "master", BRIDGE)
    network.reconcile()
    assert not reaches(stranger.namespace, pair[0].ipv4, timeout=1)
    assert not reaches(stranger.namespace, GATEWAYS[1].address, timeout=1)


def test_nothing_is_changed_in_a_network_that_is_as_desired(network: VirtualNetwork, pair: Pair) -> None:
    assert network.reconcile().changes == 0
    network.add_pod(4)
    assert network.reconcile().changes > 0
    assert network.reconcile().changes == 0


def test_a_port_without_a_link_is_reported_and_the_others_are_connected(network: VirtualNetwork) -> None:
    pods = network.add_pod(2), network.add_pod(3)
    absent = LocalPort("tap9", "02:00:00:00:00:09", ("10.7.0.9",))
    desired = network.desired()
    outcome = reconcile_network(network.netns, desired._replace(ports=(absent, *desired.ports)))
    assert outcome.missing == {"tap9"}
    assert reaches(pods[0].namespace, pods[1].ipv4)


DAMAGE = [
    ["ip", "link", "delete", BRIDGE],
    ["ip", "link", "set", BRIDGE, "down"],
    ["ip", "link", "set", BRIDGE, "address", "02:00:00:00:00:99"],
    ["ip", "link", "set", BRIDGE, "mtu", "1300"],
    ["ip", "address", "flush", "dev", BRIDGE],
    ["ip", "address", "add", "10.7.0.99/24", "dev", BRIDGE],
    ["sh", "-c", f"ip address flush dev {BRIDGE} && ip address add 10.7.0.99/24 dev {BRIDGE}"],
    ["sh", "-c", f"ip address flush dev {BRIDGE} && ip address add fd07::1/80 dev {BRIDGE} nodad"],
    ["ip", "neighbour", "delete", "10.7.0.2", "dev", BRIDGE],
    ["ip", "neighbour", "replace", "10.7.0.2", "lladdr", "02:00:00:00:00:99", "dev", BRIDGE],
    ["bridge", "fdb", "delete", "02:00:00:00:00:02", "dev", "tap2", "master"],
    ["bridge", "fdb", "replace", "02:00:00:00:00:02", "dev", "tap3", "master", "static"],
    ["bridge", "fdb", "delete", GATEWAY_MAC, "dev", BRIDGE, "self"],
    ["bridge", "fdb", "replace", GATEWAY_MAC, "dev", "tap3", "master", "static"],
    ["bridge", "fdb", "replace", GATEWAY_MAC, "dev", "tap3", "master", "permanent"],
    ["bridge", "link", "set", "dev", "tap2", "learning", "on"],
    ["ip", "link", "set", "tap2", "nomaster"],
    ["ip", "link", "set", "tap2", "down"],
    ["nft", "flush", "ruleset"],
    ["nft", "delete", "table", "bridge", "contrail"],
    ["nft", "flush", "set", "bridge", "contrail", "ipv4"],
    ["nft", "flush", "chain", "bridge", "contrail", "from_ports"],
    ["nft", "add", "table", "bridge", "contrail", "{ flags dormant ; }"],
    ["nft", "chain", "bridge", "contrail", "between_ports", "{ policy drop ; }"],
    ["nft", f"add chain bridge contrail other {DROPPING}"],
    ["nft", f"add table bridge other ; add chain bridge other dropping {DROPPING}"],
    ["nft", f"add table netdev other ; add chain netdev other dropping {DROPPING_FROM_TAP2}"],
    ["bridge", "link", "set", "dev", "tap2", "state", "disabled"],
    ["sh", "-c", "bridge link set dev tap2 isolated on && bridge link set dev tap3 isolated on"],
    ["sysctl", "-q", f"net.ipv6.conf.{BRIDGE}.disable_ipv6=1"],
    ["ip", "link", "set", BRIDGE, "arp", "off"],
    ["ip", "link", "set", BRIDGE, "multicast", "off"],
    ["ip", "link", "set", BRIDGE, "type", "bridge", "mcast_snooping", "1"],
    ["ip", "route", "add", "blackhole", "10.7.0.2"],
    ["ip", "route", "add", "unreachable", "10.7.0.0/25"],
    ["ip", "route", "add", "10.7.0.2", "dev", "tap3"],
    ["sh", "-c", "ip nexthop add id 7 dev tap3 && ip route add 10.7.0.2 nhid 7"],
    ["ip", "route", "prepend", "blackhole", "10.7.0.0/24"],
    ["ip", "-6", "route", "add", "prohibit", "fd07::2", "proto", "67"],
    ["ip", "-6", "route", "add", "unreachable", "fd07::/64", "metric", "1"],
    ["ip", "rule", "add", "to", "10.7.0.0/24", "blackhole"],
    ["ip", "rule", "add", "not", "from", "192.0.2.1", "lookup", "77", "priority", "5"],
    ["ip", "rule", "flush"],
    ["ip", "-6", "rule", "add", "unreachable"],
    ["ip", "-6", "rule", "delete", "priority", "32766"],
]


@pytest.mark.parametrize("damage", DAMAGE, ids=" ".join)
def test_what_was_changed_by_hand_is_repaired(network: VirtualNetwork, pair: Pair, damage: list[str]) -> None:
    network.run(*damage)
    assert network.reconcile().changes > 0
    assert network.reconcile().changes == 0
    first, second = pair
    assert reaches(first.namespace, second.ipv4)
    assert reaches(first.namespace, second.ipv6)
    for gateway in GATEWAYS:
        assert reaches(first.namespace, gateway.address)


@pytest.mark.parametrize("damage", [["ip", "link", "delete", BRIDGE], ["nft", "flush", "ruleset"]], ids=" ".join)
def test_a_network_works_where_a_link_of_the_kernel_has_the_index_of_its_bridge(
    network: VirtualNetwork, damage: list[str]
) -> None:
    """A bridge has the name of such a link here, since not every kernel has these tunnels."""
    network.ip("link", "delete", BRIDGE)
    network.ip("link", "add", "tunl0", "index", "2", "type", "bridge")
    first, second = network.add_pod(2), network.add_pod(3)
    for _ in range(2):
        assert network.reconcile().changes > 0
        assert network.reconcile().changes == 0
        assert reaches(first.namespace, second.ipv4)
        assert reaches(first.namespace, second.ipv6)
        for gateway in GATEWAYS:
            assert reaches(first.namespace, gateway.address)
        network.run(*damage)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damages=some.lists(some.sampled_from(DAMAGE), min_size=2, max_size=12))
def test_any_sequence_of_changes_by_hand_is_repaired(
    network: VirtualNetwork, pair: Pair, damages: list[list[str]]
) -> None:
    for damage in damages:
        with contextlib.suppress(subprocess.CalledProcessError):  # what it changes may be gone by now
            network.run(*damage)
    network.reconcile()
    assert network.reconcile().changes == 0
    first, second = pair
    assert reaches(first.namespace, second.ipv4)
    assert reaches(second.namespace, first.ipv6)


@pytest.mark.parametrize(
    "route",
    [
        ["198.51.100.0/24", "dev", "tap2"],
        ["blackhole", "10.0.0.0/8"],
        ["blackhole", "10.7.0.0/24", "metric", "50"],
        ["unreachable", "10.7.0.2", "table", "77"],
    ],
    ids=" ".join,
)
def test_a_route_of_another_program_that_disturbs_nothing_stays(
    network: VirtualNetwork, pair: Pair, route: list[str]
) -> None:
    network.ip("route", "add", *route)
    before = network.ip("route", "show", "table", "all")
    assert network.reconcile().changes == 0
    assert network.ip("route", "show", "table", "all") == before
    assert reaches(pair[0].namespace, GATEWAYS[0].address)


def test_an_add_that_prepares_a_network_leaves_rules_and_routes_of_others_alone(network: VirtualNetwork) -> None:
    network.ip("rule", "add", "to", "10.7.0.0/24", "blackhole")
    network.ip("route", "add", "blackhole", "10.7.0.2")
    reconcile_network(network.netns, network.desired(), removes=False)
    assert "blackhole" in network.ip("rule")
    assert "blackhole" in network.ip("route")


def test_a_rule_that_was_exchanged_is_repaired(network: VirtualNetwork, pair: Pair) -> None:
    chain = network.run("nft", "--handle", "list", "chain", "bridge", "contrail", "from_ports")
    last = re.findall(r"# handle (\d+)", chain)[-1]
    network.run("nft", "replace", "rule", "bridge", "contrail", "from_ports", "handle", last, "accept")
    pair[0].namespace.ip("address", "add", "10.7.0.99/24", "dev", "eth0")
    assert reaches(pair[0].namespace, pair[1].ipv4, source="10.7.0.99")
    assert network.reconcile().changes > 0
    assert network.reconcile().changes == 0
    assert not reaches(pair[0].namespace, pair[1].ipv4, source="10.7.0.99", timeout=1)


def test_a_chain_whose_priority_was_changed_is_repaired(network: VirtualNetwork, pair: Pair) -> None:
    assert pair
    late = nft.new_chain(filter_rules.TABLE, nft.Chain("from_ports", 0, 300, nft.DROP))
    changed = [late if each.what.startswith("create chain from_ports") else each for each in create_filter()]
    with InNetns(network.netns), NftablesSocket() as filters:
        filters.commit([nft.delete_table(filter_rules.TABLE), *changed])
    assert "priority 300" in network.run("nft", "list", "table", "bridge", "contrail")
    assert network.reconcile().changes > 0
    assert "priority 300" not in network.run("nft", "list", "table", "bridge", "contrail")


def test_a_table_that_a_running_program_owns_is_named_and_left(network: VirtualNetwork, pair: Pair) -> None:
    request = nft.new_table(nft.Table(nft.BRIDGE, "other"))
    owner = attribute(2, (2).to_bytes(4, "big"))  # NFTA_TABLE_FLAGS, NFT_TABLE_F_OWNER
    with InNetns(network.netns), NftablesSocket() as program:
        program.commit([request._replace(body=request.body + owner)])
        outcome = network.reconcile()
        assert "table bridge other of another program" in (outcome.problem or "")
        assert outcome.changes == 0
        assert reaches(pair[0].namespace, pair[1].ipv4)
    assert network.reconcile().problem is None


def test_a_port_whose_pod_has_it_down_is_as_desired(network: VirtualNetwork, pair: Pair) -> None:
    pair[0].namespace.ip("link", "set", "eth0", "down")
    until(lambda: "state disabled" in network.run("bridge", "link", "show", "dev", pair[0].port.link))
    assert network.reconcile().changes == 0


def test_a_link_with_the_name_of_the_bridge_is_replaced(network: VirtualNetwork, pair: Pair) -> None:
    for kind in (["bridge"], ["veth", "peer", "name", "other"]):
        network.ip("link", "delete", BRIDGE)
        network.ip("link", "add", BRIDGE, "up", "type", *kind)
        network.reconcile()
        assert network.reconcile().changes == 0
        assert reaches(pair[0].namespace, pair[1].ipv4)
        assert reaches(pair[0].namespace, GATEWAYS[1].address)


def test_a_link_with_the_index_of_the_bridge_is_named_and_left(network: VirtualNetwork, pair: Pair) -> None:
    assert pair
    network.ip("link", "set", BRIDGE, "name", "renamed")
    with pytest.raises(LinkError, match="renamed"):
        network.reconcile()
    assert "renamed" in network.ip("link")


def test_what_was_added_by_hand_is_removed(network: VirtualNetwork, pair: Pair) -> None:
    assert pair
    network.ip("address", "add", "10.99.0.1/24", "dev", BRIDGE)
    network.ip("neighbour", "add", "10.7.0.77", "lladdr", "02:00:00:00:00:77", "nud", "permanent", "dev", BRIDGE)
    network.run("bridge", "fdb", "add", "02:00:00:00:00:77", "dev", "tap2", "master", "static")
    element = '{ "tap2" . 02:00:00:00:00:02 . 10.7.0.77 }'
    network.run("nft", "add", "element", "bridge", "contrail", "ipv4", element)
    network.reconcile()
    assert "10.99.0.1" not in network.ip("address")
    assert "10.7.0.77" not in network.ip("neighbour")
    assert "02:00:00:00:00:77" not in network.run("bridge", "fdb")
    assert "10.7.0.77" not in network.run("nft", "list", "ruleset")
    assert network.reconcile().changes == 0


def test_what_a_deleted_port_had_is_removed(network: VirtualNetwork, pair: Pair) -> None:
    gone = pair[1]
    network.ip("link", "delete", gone.port.link)
    network.pods.remove(gone)
    network.reconcile()
    everything = network.ip("neighbour") + network.run("bridge", "fdb") + network.run("nft", "list", "ruleset")
    assert gone.mac not in everything
    assert gone.ipv4 not in everything


def test_what_an_unknown_port_has_stays(network: VirtualNetwork, pair: Pair) -> None:
    connected = network.pods.pop()
    assert network.reconcile().changes == 0
    assert reaches(connected.namespace, pair[0].ipv4)


def test_a_pod_takes_over_the_addresses_and_mac_of_another(network: VirtualNetwork, pair: Pair) -> None:
    first, second = pair
    network.ip("link", "delete", second.port.link)
    network.pods.remove(second)
    successor = network.add_pod(3)
    network.reconcile()
    assert reaches(first.namespace, successor.ipv4)
    assert reaches(first.namespace, successor.ipv6)


@pytest.mark.parametrize(
    "gateways", [("10.7.0.254/24", "fd07::254/64"), ("10.7.0.1/16", "fd07::1/48")], ids=["address", "prefix"]
)
def test_gateways_change_at_once(network: VirtualNetwork, gateways: tuple[str, str]) -> None:
    addresses = tuple(Address(text.split("/")[0], int(text.split("/")[1])) for text in gateways)
    changed = network.desired()._replace(gateways=(addresses[0], addresses[1]))
    assert reconcile_network(network.netns, changed).changes > 0
    shown = network.ip("-o", "address", "show", "dev", BRIDGE, "scope", "global")
    assert re.findall(r"inet6? (\S+)", shown) == list(gateways)
    assert reconcile_network(network.netns, changed).changes == 0


def test_a_network_without_gateways_connects_its_pods(network: VirtualNetwork) -> None:
    pods = network.add_pod(2), network.add_pod(3)
    reconcile_network(network.netns, Network(network.vni, MTU, (), tuple(pod.port for pod in pods)))
    assert reaches(pods[0].namespace, pods[1].ipv4)
    assert not reaches(pods[0].namespace, GATEWAYS[0].address, timeout=1)


def test_packets_are_not_forwarded_to_other_networks(network: VirtualNetwork, pair: Pair) -> None:
    assert pair
    assert network.run("sysctl", "-n", "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding").split() == ["0", "0"]
