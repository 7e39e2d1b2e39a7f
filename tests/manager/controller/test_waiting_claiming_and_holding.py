"""Small books: who waits for what, who claimed what, and which ports are still to be unplugged."""

from contrail_config.store import UNPLUGGED_HOLD
from manager.controller.claims import Claims, Conflict
from manager.controller.held_ports import HeldPorts
from manager.controller.pending_index import PendingIndex
from manager.dependencies import Dependency, mac_dependency, nad_dependency, uid_dependency

NET_A, NET_B = nad_dependency("blue/net-a"), nad_dependency("blue/net-b")


class TestWaiting:
    def test_who_waits_is_found_by_what_it_waits_for_in_order(self) -> None:
        room = PendingIndex()
        room.wait("p2", [NET_A, NET_B])
        room.wait("p1", [NET_A])
        assert room.waiting_for(NET_A) == ["p2", "p1"]
        assert room.waiting_for(NET_B) == ["p2"]

    def test_who_waits_anew_forgets_what_it_waited_for(self) -> None:
        room = PendingIndex()
        room.wait("p1", [NET_A])
        room.wait("p1", [NET_B])
        assert room.waiting_for(NET_A) == []
        room.wait("p1", [])
        assert room.waiting_for(NET_B) == []

    def test_nothing_is_kept_of_who_left(self) -> None:
        room = PendingIndex()
        room.wait("p1", [NET_A])
        room.leave("p1")
        room.leave("p1")
        assert (room._waiting, room._dependencies) == ({}, {})


class TestClaiming:
    def test_the_first_has_it_until_it_drops_it(self) -> None:
        freed: list[Dependency] = []
        claims = Claims(freed.append)
        mac = mac_dependency("n1", "02:00:00:00:00:07")
        assert claims.claim("p1", [uid_dependency("u1"), mac]) is None
        assert claims.claim("p2", [uid_dependency("u2"), mac]) == Conflict(mac, "p1")
        claims.release("p1")
        assert freed == [uid_dependency("u1"), mac]
        assert claims.claim("p2", [uid_dependency("u2"), mac]) is None

    def test_all_or_nothing_is_claimed(self) -> None:
        claims = Claims(lambda _need: None)
        claims.claim("p1", [NET_A])
        assert claims.claim("p2", [NET_B, NET_A]) is not None
        assert claims.claim("p3", [NET_B]) is None

    def test_claiming_anew_keeps_what_is_claimed_again_and_frees_the_rest(self) -> None:
        freed: list[Dependency] = []
        claims = Claims(freed.append)
        claims.claim("p1", [NET_A, NET_B])
        claims.claim("p1", [NET_B])
        assert freed == [NET_A]
        claims.release("p1")
        claims.release("p1")
        assert (claims._holders, claims._claims) == ({}, {})


class TestHolding:
    def test_a_port_is_found_once(self) -> None:
        ports = HeldPorts(lambda: 0.0)
        ports.add([("vmi-1", "n1"), ("vmi-2", "n2")])
        assert ports.pop("vmi-1") == "n1"
        assert ports.pop("vmi-1") is None
        assert ports.pop("another") is None

    def test_it_is_forgotten_when_the_hold_is_over(self) -> None:
        now = 0.0
        ports = HeldPorts(lambda: now)
        ports.add([("vmi-1", "n1")])
        now = UNPLUGGED_HOLD - 1
        ports.add([("vmi-2", "n1")])
        now = UNPLUGGED_HOLD
        assert ports.pop("vmi-1") is None
        assert ports.pop("vmi-2") == "n1"
        assert not ports._ports

    def test_one_that_is_noted_anew_keeps_no_other_from_being_forgotten(self) -> None:
        now = 0.0
        ports = HeldPorts(lambda: now)
        ports.add([("vmi-1", "n1"), ("vmi-2", "n1")])
        now = 100.0
        ports.add([("vmi-1", "n1")])
        now = UNPLUGGED_HOLD
        assert ports.pop("vmi-2") is None
        assert list(ports._ports) == ["vmi-1"]
