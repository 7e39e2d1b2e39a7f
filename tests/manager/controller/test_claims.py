"""Claims: uids and MACs, first come, first served; a derived MAC gives way."""

import uuid

import pytest

from contrail_config.objects import interface_mac
from manager.controller import claims as claims_module
from manager.controller.claims import Claims, Conflict, MacRequest
from manager.dependencies import Dependency, mac_dependency, uid_dependency

MAC = "02:00:00:00:00:07"
LEFT, RIGHT = "net-left", "net-right"


def vmi() -> str:
    return str(uuid.uuid4())


def requested(network: str = LEFT, mac: str = MAC) -> MacRequest:
    return MacRequest(network, vmi(), mac)


def derived(network: str = LEFT, vmi_uuid: str | None = None) -> MacRequest:
    return MacRequest(network, vmi_uuid or vmi(), None)


@pytest.fixture
def released() -> list[Dependency]:
    return []


@pytest.fixture
def claims(released: list[Dependency]) -> Claims:
    return Claims(released.append)


@pytest.fixture
def few_macs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derives the same MACs for all interfaces."""

    def derive(_vmi_uuid: str, attempt: int = 0) -> str:
        return f"02:00:00:00:01:{attempt:02x}"

    monkeypatch.setattr(claims_module, "interface_mac", derive)


def test_the_first_claimant_keeps_it_until_released(claims: Claims, released: list[Dependency]) -> None:
    assert claims.claim("p1", "u1", [requested()]) == [MAC]
    assert claims.claim("p2", "u2", [requested()]) == Conflict(mac_dependency(LEFT, MAC), "p1")
    claims.release("p1")
    assert released == [uid_dependency("u1"), mac_dependency(LEFT, MAC)]
    assert claims.claim("p2", "u2", [requested()]) == [MAC]


def test_a_uid_belongs_to_one_pod(claims: Claims) -> None:
    claims.claim("p1", "u1", [])
    assert claims.claim("p2", "u1", []) == Conflict(uid_dependency("u1"), "p1")


def test_a_mac_may_be_in_two_networks(claims: Claims) -> None:
    assert claims.claim("p1", "u1", [requested(LEFT), requested(RIGHT)]) == [MAC, MAC]
    assert claims.claim("p2", "u2", [requested("other")]) == [MAC]


def test_claims_are_all_or_none(claims: Claims) -> None:
    claims.claim("p1", "u1", [requested(LEFT)])
    assert isinstance(claims.claim("p2", "u2", [requested(RIGHT), requested(LEFT)]), Conflict)
    assert claims.claim("p3", "u3", [requested(RIGHT)]) == [MAC]


def test_claiming_again_keeps_repeated_claims_and_releases_the_others(
    claims: Claims, released: list[Dependency]
) -> None:
    claims.claim("p1", "u1", [requested(LEFT), requested(RIGHT)])
    claims.claim("p1", "u1", [requested(RIGHT)])
    assert released == [mac_dependency(LEFT, MAC)]
    claims.release("p1")
    claims.release("p1")
    assert (claims._uids, claims._macs, claims._claims) == ({}, {}, {})


def test_a_requested_mac_conflicts_with_a_derived_one(claims: Claims, released: list[Dependency]) -> None:
    request = derived()
    claims.claim("p1", "u1", [request])
    mac = interface_mac(request.vmi_uuid)
    assert claims.claim("p2", "u2", [requested(LEFT, mac)]) == Conflict(mac_dependency(LEFT, mac), "p1")
    claims.release("p1")
    assert mac_dependency(LEFT, mac) in released


def test_a_derived_mac_is_that_of_the_interface(claims: Claims) -> None:
    first, second = derived(), derived()
    assert claims.claim("p1", "u1", [first, second]) == [interface_mac(first.vmi_uuid), interface_mac(second.vmi_uuid)]


def test_a_derived_mac_gives_way_to_a_requested_one(claims: Claims) -> None:
    request = derived()
    claims.claim("p1", "u1", [requested(LEFT, interface_mac(request.vmi_uuid))])
    assert claims.claim("p2", "u2", [request]) == [interface_mac(request.vmi_uuid, 1)]


def test_a_derived_mac_gives_way_to_one_that_the_same_pod_requests(claims: Claims) -> None:
    request = derived()
    mac = interface_mac(request.vmi_uuid)
    assert claims.claim("p1", "u1", [request, requested(LEFT, mac)]) == [interface_mac(request.vmi_uuid, 1), mac]


@pytest.mark.usefixtures("few_macs")
def test_equal_derived_macs_are_derived_again(claims: Claims) -> None:
    assert claims.claim("p1", "u1", [derived(), derived()]) == ["02:00:00:00:01:00", "02:00:00:00:01:01"]
    assert claims.claim("p2", "u2", [derived(), derived(RIGHT)]) == ["02:00:00:00:01:02", "02:00:00:00:01:00"]


@pytest.mark.usefixtures("few_macs")
def test_a_repeated_claim_keeps_its_derived_mac_although_an_earlier_one_became_free(claims: Claims) -> None:
    claims.claim("p1", "u1", [derived()])
    request = derived()
    assert claims.claim("p2", "u2", [request]) == ["02:00:00:00:01:01"]
    claims.release("p1")
    assert claims.claim("p2", "u2", [request]) == ["02:00:00:00:01:01"]


def test_existing_virtual_machines_keep_their_macs_after_a_restart(claims: Claims) -> None:
    request = derived()
    mac = interface_mac(request.vmi_uuid)
    assert claims.adopt("p1", "u1", [(LEFT, mac), (RIGHT, MAC)]) == []
    assert claims.adopt("p2", "u2", [(LEFT, mac), (LEFT, MAC)]) == [Conflict(mac_dependency(LEFT, mac), "p1")]
    claims.release("p2")
    assert isinstance(claims.claim("p3", "u3", [requested(LEFT, mac)]), Conflict)
    assert claims.claim("p3", "u3", [requested(LEFT, MAC)]) == [MAC]


def test_different_attempts_derive_different_macs() -> None:
    vmi_uuid = vmi()
    macs = {interface_mac(vmi_uuid, attempt) for attempt in range(20)}
    assert len(macs) == 20
    assert all(mac.startswith("02:") and len(mac) == 17 for mac in macs)


def test_moved_claims_are_held_and_released_under_the_new_name(claims: Claims) -> None:
    claims.claim("p1", "u1", [requested()])
    claims.move("p1", "other")
    assert claims.claim("p2", "u2", [requested()]) == Conflict(mac_dependency(LEFT, MAC), "other")
    assert claims.claim("p2", "u1", []) == Conflict(uid_dependency("u1"), "other")
    claims.release("other")
    assert claims.claim("p2", "u1", [requested()]) == [MAC]
