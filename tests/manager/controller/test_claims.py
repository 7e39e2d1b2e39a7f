"""Claims: first come, first served."""

from manager.controller.claims import Claims, Conflict
from manager.dependencies import Dependency, mac_dependency, nad_dependency, uid_dependency

NET_A, NET_B = nad_dependency("blue/net-a"), nad_dependency("blue/net-b")


def test_the_first_claimant_keeps_it_until_released() -> None:
    released: list[Dependency] = []
    claims = Claims(released.append)
    mac = mac_dependency("n1", "02:00:00:00:00:07")
    assert claims.claim("p1", [uid_dependency("u1"), mac]) is None
    assert claims.claim("p2", [uid_dependency("u2"), mac]) == Conflict(mac, "p1")
    claims.release("p1")
    assert released == [uid_dependency("u1"), mac]
    assert claims.claim("p2", [uid_dependency("u2"), mac]) is None


def test_claims_are_all_or_none() -> None:
    claims = Claims(lambda _dependency: None)
    claims.claim("p1", [NET_A])
    assert claims.claim("p2", [NET_B, NET_A]) is not None
    assert claims.claim("p3", [NET_B]) is None


def test_claiming_again_keeps_repeated_claims_and_releases_the_others() -> None:
    released: list[Dependency] = []
    claims = Claims(released.append)
    claims.claim("p1", [NET_A, NET_B])
    claims.claim("p1", [NET_B])
    assert released == [NET_A]
    claims.release("p1")
    claims.release("p1")
    assert (claims._holders, claims._claims) == ({}, {})
