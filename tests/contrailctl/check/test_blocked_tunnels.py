"""Ways through tunnels that answer nothing: what follows from another finding is said once."""

import pytest

from cni_contrail.datapath.desired import RemoteAddress, RemoteBlock, Routed, RoutedNetwork, Underlay
from cni_contrail.datapath.node_outcome import INDEX_0
from cni_contrail.follower.desired_state import DesiredState
from cni_contrail.inspection.difference import Difference
from cni_contrail.inspection.path_probe import Passage, Way
from contrailctl.check.connectivity import without_consequences
from contrailctl.check.findings import Fault, Finding
from contrailctl.check.node import findings_of, ways_through_tunnels

A, B = "192.0.2.1", "192.0.2.2"
OUTSIDE, THROUGH = Way(A, B, 1450), Way("10.32.0.0", "10.32.0.64", 1450, B)
BLOCKED = Finding("node-a", "index 0", Fault.BLOCKED, "tunnel", peer=B)
TUNNELS = {"node-a": (A,), "node-b": (B,)}


def desired(*addresses: RemoteAddress, is_complete: bool = True, own: tuple[str, ...] = ("10.32.0.0",)) -> DesiredState:
    blocks = (RemoteBlock("10.32.0.64/26", B),)
    routed = RoutedNetwork(1, 1450, own, ("10.32.0.0/26",), blocks, is_complete, addresses)
    return DesiredState("v", (), Routed((), None), Underlay((A,), 4789, frozenset({B}), routed), ())


def found(passages: dict[Way, Passage]) -> list[tuple[Fault, str]]:
    return [(each.fault, each.peer) for each in findings_of("node-a", passages)]


def test_a_way_leads_through_each_tunnel_in_one_family() -> None:
    both = RemoteAddress("10.32.0.64", B), RemoteAddress("fd00::40", B)
    assert ways_through_tunnels(desired(*both, own=("10.32.0.0", "fd00::"))) == [THROUGH]
    assert THROUGH.length == 1450
    assert ways_through_tunnels(desired(*both, own=("fd00::",))) == [Way("fd00::", "fd00::40", 1450, B)]


def test_no_way_leads_through_tunnels_that_are_not_known_or_not_reached() -> None:
    address = RemoteAddress("10.32.0.64", B)
    assert ways_through_tunnels(desired(address, is_complete=False)) == []
    assert ways_through_tunnels(desired(address, own=())) == []
    assert ways_through_tunnels(desired(RemoteAddress("10.32.0.64", "2001:db8::2"))) == []


def test_a_blocked_tunnel_is_found() -> None:
    assert found({OUTSIDE: Passage.EVERYTHING, THROUGH: Passage.NOTHING}) == [(Fault.BLOCKED, B)]
    assert found({OUTSIDE: Passage.EVERYTHING, THROUGH: Passage.EVERYTHING}) == []


def test_a_tunnel_on_a_way_that_carries_nothing_is_not_listed() -> None:
    assert found({OUTSIDE: Passage.NOTHING, THROUGH: Passage.NOTHING}) == [(Fault.SILENT, B)]
    assert found({OUTSIDE: Passage.SHORT_PACKETS, THROUGH: Passage.NOTHING}) == [(Fault.LOST, B)]


CAUSES = [
    (Fault.MISSING, "tunnel contrail.0"),
    (Fault.WRONG, "tunnel contrail.0"),
    (Fault.WRONG, "filter of tunnel packets"),
    (Fault.MISSING, f"filter of tunnel packets: node {A}"),
    (Fault.MISSING, "address 10.32.0.64 of contrail.0"),
    (Fault.STALE, "address 10.32.0.0 of contrail.0"),
    (Fault.MISSING, f"route to 10.32.0.0/26 by {A} on contrail.0 from 10.32.0.64"),
    (Fault.STALE, "route to 10.32.0.0/28 by 192.0.2.7 on contrail.0"),
    (Fault.STALE, "route to 10.32.0.0/28: unreachable"),
    (Fault.WRONG, f"neighbour {A} by contrail.0: 02:00:00:00:00:01"),
    (Fault.MISSING, f"entry of contrail.0 for 02:00:00:00:00:01: to node {A}"),
    (Fault.WRONG, "index 0 on other nodes"),
]
OTHERS = [
    (Fault.STALE, f"neighbour {A} by contrail.0"),
    (Fault.STALE, "neighbour 10.32.0.70 by tap1"),
    (Fault.MISSING, "neighbour 10.32.0.70 by tap1: 02:00:00:00:00:01"),
    (Fault.MISSING, "route to 10.32.0.70 by tap1"),
    (Fault.MISSING, "route to 10.32.0.64/26: unreachable"),
    (Fault.MISSING, "host end tap1"),
    (Fault.WRONG, "MTU of host end tap1"),
    (Fault.WRONG, "settings of the node"),
    (Fault.WRONG, "filter of index 0"),
    (Fault.STALE, f"filter of tunnel packets: node {A}"),
    (Fault.MISSING, "filter of tunnel packets: node 192.0.2.7"),
    (Fault.MISSING, "route to 10.32.0.128/26 by 192.0.2.7 on contrail.0"),
    (Fault.STALE, "entry of contrail.0 for 02:00:00:00:00:01"),
    (Fault.PROBLEM, "tunnel contrail.0"),
]


@pytest.mark.parametrize(("fault", "what"), CAUSES)
def test_a_tunnel_is_not_listed_if_the_kernel_of_the_other_node_says_why(fault: Fault, what: str) -> None:
    damage = Finding("node-b", "index 0", fault, what)
    assert without_consequences({BLOCKED, damage}, TUNNELS) == {damage}


@pytest.mark.parametrize(("fault", "what"), OTHERS)
def test_a_tunnel_is_listed_beside_what_cannot_be_its_cause(fault: Fault, what: str) -> None:
    other = Finding("node-b", "index 0", fault, what)
    assert without_consequences({BLOCKED, other}, TUNNELS) == {BLOCKED, other}


def test_a_tunnel_is_listed_beside_damage_of_other_networks_and_nodes() -> None:
    of_third = Finding("node-c", "index 0", Fault.MISSING, "tunnel contrail.0")
    assert without_consequences({BLOCKED, of_third}, TUNNELS) == {BLOCKED, of_third}
    elsewhere = Finding("node-b", "blue", Fault.MISSING, "neighbour")
    assert without_consequences({BLOCKED, elsewhere}, TUNNELS) == {BLOCKED, elsewhere}
    assert without_consequences({BLOCKED}, {}) == {BLOCKED}


def test_no_probe_is_made_through_a_tunnel_that_is_damaged_here() -> None:
    gone = Difference(INDEX_0, "missing", "tunnel contrail.0")
    stale = Difference(INDEX_0, "stale", "neighbour 10.32.0.70 by tap1")
    of_network = gone._replace(vni=7)
    state = desired(RemoteAddress("10.32.0.64", B))
    assert ways_through_tunnels(state, [stale, gone]) == []
    assert ways_through_tunnels(state, [stale, of_network]) == [THROUGH]
    assert ways_through_tunnels(state, [gone._replace(what=f"filter of tunnel packets: node {B}")]) == []
    assert ways_through_tunnels(state, [gone._replace(what="filter of tunnel packets: node 192.0.2.7")]) == [THROUGH]
