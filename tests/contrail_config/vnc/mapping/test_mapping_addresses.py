"""Addresses: to the server and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrail_config.vnc.mapping import annotations
from contrail_config.vnc.mapping.addresses import (
    AddressClaim,
    AddressRecord,
    claim_body,
    held_annotations,
    instance_ip_name,
    read_address,
)
from tests.support.config_object_strategies import FQ_NAMES, UUIDS

ADDRESSES = st.ip_addresses().map(str)
CLAIMS = st.builds(AddressClaim, UUIDS, FQ_NAMES, ADDRESSES, UUIDS, st.integers(1, 9))
U = "0a000000-0000-4000-8000-000000000001"


@given(CLAIMS, UUIDS)
def test_an_address_is_read_as_it_was_claimed(claim: AddressClaim, uuid: str) -> None:
    expected = AddressRecord(uuid, claim.name, claim.network_uuid, claim.address, claim.owner)
    assert read_address({**claim_body(claim, "k8s"), "uuid": uuid}, "k8s") == expected


@given(CLAIMS)
def test_a_claim_has_no_uuid(claim: AddressClaim) -> None:
    assert "uuid" not in claim_body(claim, "k8s")


@given(CLAIMS, UUIDS, st.floats(0, 1e10))
def test_a_hold_is_read_as_it_was_written(claim: AddressClaim, uuid: str, until: float) -> None:
    item = {**claim_body(claim, "k8s"), "uuid": uuid}
    record = read_address(item, "k8s")
    assert record is not None
    held = read_address({**item, "annotations": held_annotations(record, until, "k8s")}, "k8s")
    assert held is not None
    assert held.held_until == pytest.approx(until, abs=0.001)
    assert held._replace(held_until=None) == record


@given(CLAIMS, UUIDS)
def test_an_address_of_another_cluster_is_not_ours(claim: AddressClaim, uuid: str) -> None:
    assert read_address({**claim_body(claim, "other"), "uuid": uuid}, "k8s") is None


@given(UUIDS, UUIDS)
def test_names_differ_by_owner_network_family_and_generation(owner: str, network: str) -> None:
    names = {instance_ip_name(owner, network, family, generation) for family in (4, 6) for generation in (1, 2, 3)}
    assert len(names) == 6
    assert instance_ip_name(owner, network, 4) == f"{owner}__{network}__v4"
    assert instance_ip_name(owner, network, 4, 2) == f"{owner}__{network}__v4__2"


def test_an_address_without_network_is_not_ours() -> None:
    pairs = {annotations.CLUSTER: "k8s", annotations.OWNER: U}
    item = {"uuid": U, "fq_name": ["x"], "instance_ip_address": "10.0.0.1", "annotations": annotations.to_map(pairs)}
    assert read_address(item, "k8s") is None


def test_a_hold_that_is_no_number_is_named() -> None:
    claim = AddressClaim(U, ("default-domain", "p", "n"), "10.0.0.1", U)
    pairs = {annotations.CLUSTER: "k8s", annotations.OWNER: U, annotations.HELD_UNTIL: "soon"}
    item = {**claim_body(claim, "k8s"), "uuid": U, "annotations": annotations.to_map(pairs)}
    with pytest.raises(ValueError, match=f"instance-ip {U}: annotation held-until"):
        read_address(item, "k8s")
