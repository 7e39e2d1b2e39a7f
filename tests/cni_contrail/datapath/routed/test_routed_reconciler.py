"""Tests of the reconciler of routed ports: drift, foreign objects, removal, and no packet lost."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from cni_contrail.datapath.desired import Masquerade, Routed, RoutedPort
from cni_contrail.datapath.routed_reconciler import reconcile_routed
from cni_contrail.datapath.routed_state import RoutedState, read_routed
from cni_contrail.link.exchange import NetlinkSocket
from cni_contrail.link.message import NetlinkRequest
from tests.cni_contrail.datapath.conftest import VirtualNetwork
from tests.cni_contrail.datapath.routed.conftest import GATEWAYS, OUTSIDE, RoutedNode, RoutedPod
from tests.support.echo import reaches
from tests.support.echo_stream import EchoStream

Pair = tuple[RoutedPod, RoutedPod]
DAMAGE = [
    ["ip", "route", "delete", "10.8.0.2"],
    ["ip", "route", "replace", "10.8.0.2", "dev", "tap3", "proto", "67"],
    ["ip", "-6", "route", "delete", "fd08::2"],
    ["ip", "neighbour", "delete", "10.8.0.2", "dev", "tap2"],
    ["ip", "neighbour", "replace", "10.8.0.2", "lladdr", "02:00:00:00:00:99", "dev", "tap2"],
    ["ip", "neighbour", "replace", "fd08::2", "lladdr", "02:00:00:00:00:99", "dev", "tap2"],
    ["ip", "address", "flush", "dev", "tap2"],
    ["ip", "link", "set", "tap2", "down"],
    ["ip", "link", "set", "tap2", "address", "02:00:00:00:00:99"],
    ["sysctl", "-w", "net.ipv4.conf.tap2.forwarding=0"],
    ["sysctl", "-w", "net.ipv4.conf.tap2.rp_filter=0"],
    ["sysctl", "-w", "net.ipv4.conf.tap2.arp_ignore=8"],
    ["sysctl", "-w", "net.ipv4.conf.tap2.arp_filter=0"],
    ["sysctl", "-w", "net.ipv6.conf.tap2.disable_ipv6=1"],
    ["sysctl", "-w", "net.ipv6.conf.tap2.accept_ra=2"],
    ["sysctl", "-w", "net.ipv4.ip_forward=0"],
    ["sysctl", "-w", "net.ipv6.conf.all.forwarding=0"],
    ["nft", "flush", "ruleset"],
    ["nft", "delete", "table", "inet", "contrail"],
    ["nft", "flush", "set", "inet", "contrail", "ports"],
    ["nft", "flush", "set", "inet", "contrail", "ipv4"],
    ["nft", "flush", "chain", "inet", "contrail", "from_ports"],
    ["nft", "flush", "chain", "inet", "contrail", "to_outside"],
    ["nft", "insert", "rule", "inet", "contrail", "from_ports", "drop"],
]


def everybody_reaches(node: RoutedNode, pair: Pair) -> None:
    """Fails unless pods, node and outside are connected, in both families."""
    first, second = pair
    for address in (*second.port.addresses, *GATEWAYS, *OUTSIDE):
        assert reaches(first.namespace, address), address
    for address in (*first.port.addresses, *second.port.addresses):
        assert reaches(node.namespace, address), address


def test_ports_are_connected(node: RoutedNode) -> None:
    pair = node.add_pod(2), node.add_pod(3)
    outcome = node.reconcile()
    assert outcome.changes > 0
    assert not outcome.problems
    assert outcome.node_problem is None
    everybody_reaches(node, pair)


def test_nothing_is_changed_where_all_is_as_desired(node: RoutedNode, pair: Pair) -> None:
    assert pair
    before = node.objects()
    assert node.reconcile().changes == 0
    assert node.objects() == before


@pytest.mark.parametrize("damage", DAMAGE, ids=" ".join)
def test_what_was_changed_by_hand_is_repaired(node: RoutedNode, pair: Pair, damage: list[str]) -> None:
    before = node.objects()
    node.run(*damage)
    outcome = node.reconcile()
    assert outcome.changes > 0
    assert not outcome.problems
    assert node.reconcile().changes == 0
    everybody_reaches(node, pair)
    assert sorted(node.objects().splitlines()) == sorted(before.splitlines())


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damages=some.lists(some.sampled_from(DAMAGE), min_size=2, max_size=12))
def test_any_sequence_of_changes_by_hand_is_repaired(node: RoutedNode, pair: Pair, damages: list[list[str]]) -> None:
    before = sorted(node.objects().splitlines())
    for damage in damages:
        node.namespace.run(*damage)  # fails if what it changes is gone by now
    assert not node.reconcile().problems
    assert node.reconcile().changes == 0
    everybody_reaches(node, pair)
    assert sorted(node.objects().splitlines()) == before


def test_what_was_added_by_hand_is_removed(node: RoutedNode, pair: Pair) -> None:
    assert pair
    before = node.objects()
    node.run("ip", "address", "add", "10.8.0.77/32", "dev", "tap2")
    node.run("ip", "neighbour", "add", "10.8.0.78", "lladdr", "02:00:00:00:00:77", "nud", "permanent", "dev", "tap2")
    node.run("ip", "route", "add", "10.8.0.79", "dev", "tap2", "proto", "67")
    node.run("nft", "add element inet contrail ipv4 { tap2 . 10.8.0.77 }")
    assert node.reconcile().changes == 4
    assert node.objects() == before


def test_objects_of_other_programs_stay(node: RoutedNode, pair: Pair) -> None:
    assert pair
    node.run("ip", "route", "add", "10.8.0.99", "dev", "uplink", "proto", "67")
    node.run("ip", "route", "add", "10.8.0.98", "dev", "tap2", "proto", "static")
    node.run("ip", "neighbour", "add", "10.8.0.97", "lladdr", "02:00:00:00:00:97", "nud", "permanent", "dev", "uplink")
    node.run("nft", "add table inet others")
    before = node.objects()
    assert node.reconcile().changes == 0
    assert node.objects() == before
    node.purge()
    assert "10.8.0.99 dev uplink" in node.run("ip", "route")
    assert "10.8.0.97 dev uplink" in node.run("ip", "neighbour")
    assert "table inet others" in node.run("nft", "list", "ruleset")


def test_a_route_of_another_program_is_a_problem_of_its_port_alone(node: RoutedNode) -> None:
    pods = node.add_pod(2), node.add_pod(3)
    node.run("ip", "route", "add", f"{pods[0].ipv4}/32", "dev", "uplink")
    outcome = node.reconcile()
    assert outcome.problems == {"tap2": "address 10.8.0.2 belongs to another port or program"}
    assert not reaches(pods[0].namespace, GATEWAYS[0], timeout=0.5)
    assert reaches(pods[1].namespace, pods[0].ipv6)
    assert node.reconcile().changes == 0


def test_an_address_of_the_node_is_a_problem(node: RoutedNode) -> None:
    node.add_pod(2)
    node.run("ip", "address", "add", "10.8.0.2/32", "dev", "uplink")
    assert node.reconcile().problems == {"tap2": "address 10.8.0.2 belongs to another port or program"}


def test_an_address_that_two_ports_have_is_a_problem(node: RoutedNode) -> None:
    first, second = node.add_pod(2), node.add_pod(3)
    node.pods[1] = second._replace(port=second.port._replace(addresses=first.port.addresses))
    assert set(node.reconcile().problems) == {"tap3"}
    assert reaches(node.namespace, first.ipv4)


def test_a_port_without_a_link_is_reported_and_the_others_are_connected(node: RoutedNode) -> None:
    pod = node.add_pod(2)
    absent = RoutedPort("tap9", "02:00:00:00:08:09", ("10.8.0.9",), GATEWAYS)
    node.pods.append(pod._replace(port=absent))
    assert node.reconcile().missing == {"tap9"}
    assert reaches(node.namespace, pod.ipv4)


def test_a_link_that_has_the_index_of_a_deleted_port_is_not_filtered(node: RoutedNode, pair: Pair) -> None:
    node.run("nft", "add element inet contrail ports { uplink }")
    neighbour = ("ip", "neighbour", "add", "192.0.2.9", "lladdr", "02:00:00:00:00:09", "nud", "permanent")
    node.run(*neighbour, "dev", "uplink")
    assert node.reconcile().changes == 1
    assert "uplink" not in node.run("nft", "list", "set", "inet", "contrail", "ports")
    assert "192.0.2.9" in node.run("ip", "neighbour")
    everybody_reaches(node, pair)


def test_a_setting_that_hides_the_gateway_from_pods_is_named(node: RoutedNode, pair: Pair) -> None:
    assert pair
    node.run("sysctl", "-qw", "net.ipv4.conf.all.arp_ignore=2")
    problem = node.reconcile().node_problem
    assert problem == "net.ipv4.conf.all.arp_ignore is 2: pods cannot resolve their gateway; set it to 0 or 1"


def test_what_a_deleted_port_had_is_removed(node: RoutedNode, pair: Pair) -> None:
    gone = pair[1]
    node.remove_pod(gone)
    assert node.reconcile().changes > 0
    for trace in (*gone.port.addresses, gone.port.mac):
        assert trace not in node.objects()
    listed = node.run("nft", "list", "set", "inet", "contrail", "ports")
    assert listed.count("tap") == 1
    assert node.reconcile().changes == 0


def test_everything_is_removed_with_the_last_port(node: RoutedNode) -> None:
    node.run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")  # adds an anycast address
    before = node.objects()
    pods = [node.add_pod(2), node.add_pod(3)]
    node.reconcile()
    for pod in pods:
        node.remove_pod(pod)
    node.reconcile()
    assert node.objects() == before


def test_the_table_that_goes_with_the_last_port_is_not_counted_as_a_repair(node: RoutedNode) -> None:
    pod = node.add_pod(2)
    node.reconcile()
    node.remove_pod(pod)
    assert node.reconcile().changes == 0
    assert "table inet contrail" not in node.run("nft", "list", "tables")


def test_a_port_that_is_not_desired_keeps_what_it_has_while_its_link_exists(node: RoutedNode, pair: Pair) -> None:
    for _ in pair:
        node.pods.pop()
        assert node.reconcile().changes == 0
    everybody_reaches(node, pair)


def test_a_successor_takes_the_address_of_a_port_that_is_no_longer_desired(node: RoutedNode, pair: Pair) -> None:
    first, second = pair
    successor = node.add_pod(5)
    successor.namespace.ip("address", "add", f"{second.ipv4}/24", "dev", "eth0")
    node.pods[1:] = [successor._replace(port=successor.port._replace(addresses=(second.ipv4,)))]
    assert not node.reconcile().problems
    second.namespace.ip("link", "set", "eth0", "down")
    assert reaches(first.namespace, second.ipv4)
    assert f'"tap3" . {second.ipv4}' not in node.run("nft", "list", "ruleset")


def test_masquerade_is_switched_and_changed(node: RoutedNode, pair: Pair) -> None:
    # Each step with a pod of its own: connections keep the address that they have.
    node.masquerade = None
    assert node.reconcile().changes == 1
    assert not reaches(pair[0].namespace, OUTSIDE[0], timeout=0.5)
    node.masquerade = Masquerade(("192.0.2.0/24",))
    assert node.reconcile().changes == 1
    assert not reaches(pair[1].namespace, OUTSIDE[0], timeout=0.5)
    assert reaches(pair[1].namespace, OUTSIDE[1])
    node.masquerade = Masquerade(())
    third = node.add_pod(4)
    node.reconcile()
    for address in OUTSIDE:
        assert reaches(third.namespace, address)


def test_purge_removes_everything_and_leaves_host_ends_isolated(node: RoutedNode) -> None:
    pods = node.add_pod(2), node.add_pod(3)
    node.masquerade = None
    node.run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")  # adds an anycast address
    before = node.run("ip", "route", "show", "table", "all") + node.run("ip", "neighbour", "show", "nud", "permanent")
    node.reconcile()
    node.run("nft", "flush", "ruleset")
    node.purge()
    after = node.run("ip", "route", "show", "table", "all") + node.run("ip", "neighbour", "show", "nud", "permanent")
    assert after == before
    assert "tap" not in node.run("ip", "-6", "route", "show", "table", "all")
    assert node.run("nft", "list", "ruleset") == ""
    for address in (*GATEWAYS, *pods[0].port.addresses):
        assert not reaches(pods[1].namespace, address, timeout=0.5)
    node.purge()
    node.reconcile()
    assert reaches(pods[0].namespace, pods[1].ipv6)


def test_a_pod_of_a_user_network_does_not_reach_routed_pods(
    node: RoutedNode, pair: Pair, network: VirtualNetwork
) -> None:
    stranger = network.add_pod(2)
    network.reconcile()
    assert reaches(stranger.namespace, "10.7.0.1")
    for prefix, targets in (("0.0.0.0/0", 0), ("::/0", 1)):
        gateway = ("10.7.0.1", "fd07::1")[targets]
        stranger.namespace.ip("route", "add", prefix, "via", gateway, "dev", "eth0")
        for address in (pair[0].port.addresses[targets], GATEWAYS[targets]):
            assert not reaches(stranger.namespace, address, timeout=0.5)


def test_a_port_that_cannot_be_encoded_is_a_problem_of_its_own(node: RoutedNode) -> None:
    pods = node.add_pod(2), node.add_pod(3), node.add_pod(4)
    node.pods[0] = pods[0]._replace(port=pods[0].port._replace(addresses=("nonsense",)))
    node.pods[1] = pods[1]._replace(port=pods[1].port._replace(mac="nonsense"))
    problems = node.reconcile().problems
    assert problems == {"tap2": "'nonsense' is not an IP address", "tap3": "'nonsense' is not a MAC address"}
    assert reaches(node.namespace, pods[2].ipv4)


def test_addresses_in_another_notation_are_the_same(node: RoutedNode, pair: Pair) -> None:
    port = pair[0].port
    other = port._replace(mac=port.mac.upper(), addresses=(port.addresses[0], "FD08:0:0::0002"))
    node.pods[0] = pair[0]._replace(port=other)
    assert node.reconcile().changes == 0


@pytest.mark.parametrize("damage", [["nft", "add", "rule", "inet", "contrail", "from_ports", "accept"], None])
def test_a_port_that_is_connected_during_a_reconciliation_stays_connected(
    node: RoutedNode, damage: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reconciler has read the state, and replaces the table, or removes it with its last port."""
    first, second = node.add_pod(2), node.add_pod(3)
    node.connect(first)
    if damage is None:
        node.remove_pod(first)
    else:
        node.run(*damage)
    states: list[RoutedState] = []

    def read_before_the_connection(*arguments: Any) -> RoutedState:
        states.append(read_routed(*arguments))
        if len(states) == 1:
            node.connect(second)
        return states[-1]

    monkeypatch.setattr("cni_contrail.datapath.routed_reconciler.read_routed", read_before_the_connection)
    with node.namespace.inside():
        reconcile_routed(Routed(() if damage is None else (first.port,), node.masquerade))
    assert len(states) == 2
    assert '"tap3" . 10.8.0.3' in node.run("nft", "list", "table", "inet", "contrail")
    assert reaches(second.namespace, OUTSIDE[0])


@pytest.mark.parametrize("position", range(11))
def test_a_port_that_is_connected_while_the_state_is_read_stays_connected(
    node: RoutedNode, position: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state is read in eleven parts: rules, chains, four sets, counters, links, addresses, neighbours, routes."""
    first, second = node.add_pod(2), node.add_pod(3)
    node.connect(first)
    read = itertools.count()
    dump = NetlinkSocket.dump

    def dump_and_connect(self: NetlinkSocket, request: NetlinkRequest) -> list[bytes]:
        bodies = dump(self, request)
        if next(read) == position:
            node.connect(second)
        return bodies

    monkeypatch.setattr(NetlinkSocket, "dump", dump_and_connect)
    with node.namespace.inside():
        reconcile_routed(Routed((first.port,), node.masquerade))
    monkeypatch.undo()
    assert next(read) >= 11
    assert node.reconcile().changes == 0
    assert reaches(node.namespace, second.ipv6)


def test_ports_that_are_connected_while_older_states_are_reconciled_stay_connected(node: RoutedNode) -> None:
    states = [node.desired()]
    ended = threading.Event()

    def reconcile_older_states() -> None:
        with node.namespace.inside():
            while not ended.is_set():
                for state in states[-2:]:
                    reconcile_routed(state)

    with ThreadPoolExecutor(1) as pool:
        older = pool.submit(reconcile_older_states)
        try:
            for number in range(10, 30):
                node.connect(node.add_pod(number))
                if number % 5 == 0:
                    states.append(node.desired())
        finally:
            ended.set()
        older.result(timeout=30)
    for pod in node.pods:
        assert reaches(pod.namespace, OUTSIDE[0])
        assert reaches(node.namespace, pod.ipv6)
    assert node.reconcile().changes == 0


class Killed(BaseException):
    """What ends the call in the middle."""


@pytest.mark.parametrize("call", ["connect", "reconcile"])
def test_a_call_that_is_killed_anywhere_is_completed_by_the_next(
    call: str, node: RoutedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = NetlinkSocket._send
    left = 0

    def count_down(self: NetlinkSocket, requests: list[NetlinkRequest]) -> int:
        nonlocal left
        if left == 0:
            raise Killed
        left -= 1
        return send(self, requests)

    for position in range(50):
        pair = node.add_pod(2), node.add_pod(3)
        left = position
        monkeypatch.setattr(NetlinkSocket, "_send", count_down)
        try:
            node.reconcile() if call == "reconcile" else node.connect(pair[0])
            killed = False
        except Killed:
            killed = True
        monkeypatch.setattr(NetlinkSocket, "_send", send)
        assert not node.reconcile().problems
        assert node.reconcile().changes == 0
        for address in pair[1].port.addresses:
            assert reaches(pair[0].namespace, address)
        for pod in pair:
            node.remove_pod(pod)
        node.reconcile()
        if not killed:
            assert position > 3
            return
    raise AssertionError("never ended by itself")


@pytest.mark.parametrize("family", [0, 1])
def test_no_packet_is_lost_while_ports_come_and_go(node: RoutedNode, pair: Pair, family: int) -> None:
    stream = EchoStream(pair[0].namespace, pair[1].port.addresses[family])
    with stream.running():
        for number in range(10, 20):
            other = node.add_pod(number)
            node.connect(other)
            for _ in range(10):
                node.reconcile()
            if number % 2:
                node.remove_pod(other)
    assert stream.sent > 100
    assert stream.lost() == 0, stream.gaps()


@pytest.mark.parametrize(
    "damage",
    [["nft", "flush", "ruleset"], ["nft", "add", "rule", "inet", "contrail", "from_ports", "accept"]],
    ids=" ".join,
)
def test_no_packet_is_lost_while_the_filter_is_replaced(node: RoutedNode, pair: Pair, damage: list[str]) -> None:
    stream = EchoStream(pair[0].namespace, pair[1].ipv4)
    with stream.running():
        for _ in range(20):
            node.run(*damage)
            assert node.reconcile().changes > 0
    assert stream.sent > 100
    assert stream.lost() == 0, stream.gaps()
