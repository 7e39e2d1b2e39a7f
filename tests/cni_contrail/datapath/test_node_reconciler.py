"""Tests of the reconciler of a node's networks: each on its own, and removal of those that are not desired."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from cni_contrail.datapath import node_reconciler
from cni_contrail.datapath.desired import Network
from cni_contrail.datapath.namespaces import Namespaces
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.datapath.node_reconciler import STALE_SECONDS, NodeReconciler
from cni_contrail.link.plan import Address
from tests.cni_contrail.datapath.conftest import GATEWAYS, MTU
from tests.support.fake_clock import FakeClock

FIRST = 13_000_000 + os.getpid() % 100_000 * 4


class OwnNamespaces(Namespaces):
    """Those of this test alone: others run at the same time."""

    def existing(self) -> set[int]:
        return super().existing() & set(range(FIRST, FIRST + 4))


def network(vni: int) -> Network:
    return Network(vni, MTU, GATEWAYS, ())


@pytest.fixture
def namespaces() -> Iterator[Namespaces]:
    own = OwnNamespaces()
    yield own
    for vni in range(FIRST, FIRST + 4):
        own.delete(vni)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def reconciler(namespaces: Namespaces, clock: FakeClock) -> NodeReconciler:
    return NodeReconciler(namespaces, clock=clock)


def ip(vni: int, *args: str) -> str:
    command = ["ip", "-n", f"contrail-{vni}", *args]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout


def test_each_desired_network_gets_a_namespace_with_its_bridge(reconciler: NodeReconciler) -> None:
    outcome = reconciler.reconcile([network(FIRST), network(FIRST + 1)])
    assert not outcome.problems
    assert "10.7.0.1" in ip(FIRST, "address")
    assert "10.7.0.1" in ip(FIRST + 1, "address")
    again = reconciler.reconcile([network(FIRST), network(FIRST + 1)])
    assert again.changes == {FIRST: 0, FIRST + 1: 0, INDEX_0: 0}


def test_a_namespace_that_was_deleted_by_hand_is_made_again(reconciler: NodeReconciler) -> None:
    reconciler.reconcile([network(FIRST)])
    subprocess.run(["ip", "netns", "delete", f"contrail-{FIRST}"], check=True, timeout=10)
    assert reconciler.reconcile([network(FIRST)]).changes[FIRST] > 0
    assert "10.7.0.1" in ip(FIRST, "address")


def test_a_network_that_is_not_desired_is_removed_after_a_while(
    reconciler: NodeReconciler, namespaces: Namespaces, clock: FakeClock
) -> None:
    reconciler.reconcile([network(FIRST), network(FIRST + 1)])
    assert reconciler.reconcile([network(FIRST)]).removed == set()
    clock.advance(STALE_SECONDS)
    assert reconciler.reconcile([network(FIRST)]).removed == {FIRST + 1}
    assert namespaces.existing() == {FIRST}


def test_a_network_that_is_desired_again_in_time_stays(reconciler: NodeReconciler, clock: FakeClock) -> None:
    reconciler.reconcile([network(FIRST)])
    reconciler.reconcile([])
    clock.advance(STALE_SECONDS - 1)
    reconciler.reconcile([network(FIRST)])
    clock.advance(STALE_SECONDS)
    assert reconciler.reconcile([]).removed == set()


def test_a_network_with_a_port_is_not_removed(reconciler: NodeReconciler, clock: FakeClock) -> None:
    reconciler.reconcile([network(FIRST)])
    ip(FIRST, "link", "add", "tap1", "type", "veth", "peer", "name", "peer1")
    reconciler.reconcile([])
    clock.advance(STALE_SECONDS)
    assert reconciler.reconcile([]).removed == set()
    ip(FIRST, "link", "delete", "tap1")
    assert reconciler.reconcile([]).removed == {FIRST}


def test_a_link_that_keeps_a_network_and_is_not_of_a_pod_is_named(reconciler: NodeReconciler, clock: FakeClock) -> None:
    reconciler.reconcile([network(FIRST)])
    ip(FIRST, "link", "add", "eth7", "type", "veth", "peer", "name", "tap1")
    reconciler.reconcile([])
    clock.advance(STALE_SECONDS)
    outcome = reconciler.reconcile([])
    assert outcome.problems == {FIRST: "not removed: link eth7 is not of a pod"}
    assert outcome.removed == set()


def test_links_that_the_kernel_makes_in_each_namespace_do_not_keep_a_network(
    reconciler: NodeReconciler, clock: FakeClock
) -> None:
    """A veth has the names here, since not every kernel has these tunnels."""
    reconciler.reconcile([network(FIRST)])
    ip(FIRST, "link", "add", "tunl0", "type", "veth", "peer", "name", "sit0")
    reconciler.reconcile([])
    clock.advance(STALE_SECONDS)
    outcome = reconciler.reconcile([])
    assert (outcome.removed, outcome.problems) == ({FIRST}, {})


def test_many_networks_that_leave_at_once_are_removed_in_several_rounds(
    reconciler: NodeReconciler, namespaces: Namespaces, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_reconciler, "MOST_REMOVED", 2)
    reconciler.reconcile([network(FIRST + number) for number in range(4)])
    ip(FIRST, "link", "add", "eth7", "type", "veth", "peer", "name", "tap1")  # keeps this one, and delays no other
    reconciler.reconcile([])
    clock.advance(STALE_SECONDS)
    assert reconciler.reconcile([]).removed == {FIRST + 1, FIRST + 2}
    assert reconciler.has_stale
    assert reconciler.reconcile([]).removed == {FIRST + 3}
    assert namespaces.existing() == {FIRST}


def test_a_network_that_fails_does_not_stop_the_others(reconciler: NodeReconciler) -> None:
    bad = network(FIRST)._replace(gateways=(Address("10.7.0.1", 24), Address("fd07::1", 64)), mtu=600)
    outcome = reconciler.reconcile([bad, network(FIRST + 1)])
    assert "br0" in outcome.problems[FIRST]
    assert FIRST + 1 in outcome.changes


def test_two_networks_with_one_number_are_refused(reconciler: NodeReconciler, namespaces: Namespaces) -> None:
    outcome = reconciler.reconcile([network(FIRST), network(FIRST), network(FIRST + 1)])
    assert str(FIRST) in outcome.problems[FIRST]
    assert namespaces.existing() == {FIRST + 1}


def test_a_process_that_starts_anew_finds_what_an_earlier_one_left(namespaces: Namespaces, clock: FakeClock) -> None:
    NodeReconciler(namespaces, clock=clock).reconcile([network(FIRST), network(FIRST + 1)])
    successor = NodeReconciler(namespaces, clock=clock)
    assert successor.reconcile([network(FIRST)]).changes == {FIRST: 0, INDEX_0: 0}
    clock.advance(STALE_SECONDS)
    assert successor.reconcile([network(FIRST)]).removed == {FIRST + 1}
