"""Networks: to the server and back, and what the server accepts of them."""

import ipaddress

import msgspec
import pytest
from hypothesis import given

from contrail_config.objects import Subnet, VirtualNetwork
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.mapping import annotations
from contrail_config.vnc.mapping.networks import (
    FIELDS,
    KIND,
    LARGEST_MTU,
    adopted_network,
    ipam_body,
    ipam_links,
    network_annotation,
    network_body,
    project_body,
    read_network,
)
from contrail_config.vnc.mapping.subnets import link_attributes, linked_subnets, reserved_addresses, subnet_problem
from tests.support.config_object_strategies import networks, subnets
from tests.support.virtual_networks import make_network

BLUE = make_network("k8s-blue-pod-network", "10.1.0.0/24", "fd00:10::/64", excluded=("10.1.0.9",), nad="shop/blue")


@given(networks())
def test_a_network_is_read_as_it_was_written(network: VirtualNetwork) -> None:
    stored = {**network_body(network, "k8s"), "virtual_network_network_id": network.vni}
    assert read_network(stored, "k8s") == network


@given(networks())
def test_the_number_is_the_servers(network: VirtualNetwork) -> None:
    body = network_body(network, "k8s")
    assert "virtual_network_network_id" not in body
    found = read_network({**body, "virtual_network_network_id": 77}, "k8s")
    assert found is not None
    assert found.vni == 77


@given(networks())
def test_a_network_of_another_cluster_is_not_ours(network: VirtualNetwork) -> None:
    assert read_network(network_body(network, "other"), "k8s") is None


@given(networks())
def test_others_find_subnets_mode_and_mtu_in_the_servers_own_fields(network: VirtualNetwork) -> None:
    body = network_body(network, "k8s")
    del body["annotations"]
    found = adopted_network({**body, "virtual_network_network_id": network.vni}, nad=network.nad)
    assert [(each.cidr, each.gateway) for each in found.subnets] == [
        (each.cidr, each.gateway) for each in network.subnets
    ]
    known = ("fq_name", "uuid", "ip_fabric_snat", "vni", "nad", "forwarding_mode")
    assert all(getattr(found, name) == getattr(network, name) for name in known)
    assert found.mtu == (1500 if network.mtu is None or network.mtu > LARGEST_MTU else network.mtu)


@given(subnets())
def test_a_subnet_reserves_no_address_for_a_dns_server(subnet: Subnet) -> None:
    (link,) = link_attributes("0a000000-0000-4000-8000-000000000001", [subnet])["ipam_subnets"]
    assert link["dns_server_address"] == link["default_gateway"]
    assert link["addr_from_start"] is True
    assert linked_subnets([{"attr": {"ipam_subnets": [link]}}]) == (Subnet(subnet.cidr, subnet.gateway),)


@given(networks())
def test_equal_subnets_have_equal_uuids(network: VirtualNetwork) -> None:
    assert ipam_links(network) == ipam_links(msgspec.structs.replace(network))
    uuids = [each["subnet_uuid"] for each in ipam_links(network)[0]["attr"]["ipam_subnets"]]
    assert len(set(uuids)) == len(network.subnets)


@given(subnets())
def test_the_first_and_the_last_address_are_reserved(subnet: Subnet) -> None:
    network = ipaddress.ip_network(subnet.cidr)
    assert reserved_addresses(subnet) == (str(network.network_address), str(network.broadcast_address))


@pytest.mark.parametrize(
    ("subnet", "problem"),
    [
        (Subnet("10.0.0.0/31", None), "needs at least four addresses"),
        (Subnet("10.0.0.1/32", None), "needs at least four addresses"),
        (Subnet("fd00::/127", None), "needs at least four addresses"),
        (Subnet("10.0.0.0/24", "10.0.1.1"), "gateway 10.0.1.1 is outside of it"),
    ],
)
def test_a_subnet_that_the_server_cannot_have_is_named(subnet: Subnet, problem: str) -> None:
    assert problem in (subnet_problem(subnet) or "")


@given(subnets())
def test_other_subnets_have_no_problem(subnet: Subnet) -> None:
    assert subnet_problem(subnet) is None


def test_fields_of_a_newer_release_are_kept() -> None:
    stored = {"futureKey": 1, **msgspec.json.decode(network_annotation(BLUE))}
    assert msgspec.json.decode(network_annotation(BLUE, stored))["futureKey"] == 1


@pytest.mark.parametrize("text", ["nonsense", "{}", '{"fqName": 5}'])
def test_an_annotation_that_cannot_be_read_is_named(text: str) -> None:
    pairs = {annotations.CLUSTER: "k8s", annotations.NETWORK: text}
    item = {"uuid": BLUE.uuid, "fq_name": list(BLUE.fq_name), "annotations": annotations.to_map(pairs)}
    with pytest.raises(ValueError, match=f"virtual-network {BLUE.uuid}: annotation network"):
        read_network(item, "k8s")


def test_an_annotation_of_another_network_is_refused() -> None:
    item = {**network_body(BLUE, "k8s"), "fq_name": ["default-domain", "k8s-default", "other"]}
    with pytest.raises(ValueError, match="the annotation is that of network"):
        read_network(item, "k8s")


def test_names_are_formed_as_upstream_forms_them() -> None:
    assert project_body(BLUE)["fq_name"] == ["default-domain", "k8s-default"]
    assert ipam_body(BLUE, "k8s")["fq_name"] == ["default-domain", "k8s-default", "k8s-blue-pod-ipam"]


async def test_the_server_stores_what_is_written(vnc: VncClient) -> None:
    await vnc.create("project", project_body(BLUE))
    await vnc.create("network-ipam", ipam_body(BLUE, "k8s"))
    assert await vnc.create(KIND, network_body(BLUE, "k8s")) == BLUE.uuid
    found = read_network(await vnc.read(KIND, BLUE.uuid, fields=FIELDS), "k8s")
    assert found == msgspec.structs.replace(BLUE, vni=5)
