"""Ways through tunnels that answer nothing: what follows from another finding is said once."""

from cni_contrail.datapath.desired import RemoteAddress, RemoteBlock, Routed, RoutedNetwork, Underlay
from cni_contrail.follower.desired_state import DesiredState
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


def test_a_tunnel_to_a_node_whose_kernel_is_damaged_is_not_listed() -> None:
    damage = Finding("node-b", "index 0", Fault.MISSING, "route")
    assert without_consequences({BLOCKED, damage}, TUNNELS) == {damage}
    elsewhere = Finding("node-b", "blue", Fault.MISSING, "neighbour")
    assert without_consequences({BLOCKED, elsewhere}, TUNNELS) == {BLOCKED, elsewhere}
    assert without_consequences({BLOCKED}, {}) == {BLOCKED}
