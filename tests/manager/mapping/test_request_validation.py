"""Requested addresses and MACs are assigned, or the pod is refused or waits with a reason."""

import json
import re
from typing import Any

import pytest

from manager.dependencies import nad_dependency, namespace_dependency, network_dependency
from manager.mapping.errors import PodRefusedError, PodWaitsError
from manager.mapping.virtual_machine import address_requests
from manager.reasons import Reason
from tests.support.catalogues import build, resolve
from tests.support.pods import make_nad, make_pod, reference

NADS = (
    make_nad("net-a", cidr="10.1.0.0/16", exclude="10.1.0.100-10.1.0.110"),
    make_nad("net-d", cidr="10.4.0.0/16,10.5.0.0/16,fd00:4::/64"),
    make_nad("tiny", cidr="10.6.0.0/30"),
    make_nad("tiny6", cidr="10.7.0.0/24,fd00:7::/126"),
)


def elements(*described: dict[str, Any]) -> str:
    return json.dumps(described)


def test_requested_addresses_and_mac_are_assigned() -> None:
    element = {"name": "net-d", "ips": ["fd00:4::7/64", "10.5.0.7"], "mac": "02-00-5E-00-53-AF"}
    (_, interface) = build(make_pod(networks=elements(element)), *NADS).interfaces
    assert interface.mac == "02:00:5e:00:53:af"
    assert [address.address for address in interface.addresses] == ["10.5.0.7", "fd00:4::7"]


def test_a_family_without_a_request_gets_an_address_too() -> None:
    (_, interface) = build(make_pod(networks=elements({"name": "net-d", "ips": ["fd00:4::7"]})), *NADS).interfaces
    assert [address.family for address in interface.addresses] == [4, 6]


def test_specific_addresses_are_requested_first() -> None:
    """Otherwise the address could be allocated to an earlier interface of the same pod."""
    pod = make_pod(networks=elements({"name": "net-a"}, {"name": "net-a", "ips": ["10.1.0.2"]}))
    requests = address_requests(pod, resolve(pod, *NADS).interfaces, cluster="k8s")
    assert [request.address for request in requests] == ["10.1.0.2", None, None]


@pytest.mark.parametrize(
    ("described", "reason", "culprit"),
    [
        ([{"name": "net-a", "ips": ["10.1.0.7", "10.1.0.8"]}], Reason.ANNOTATION_INVALID, "more than one IPv4"),
        ([{"name": "net-a", "ips": ["10.1.0.300"]}], Reason.ANNOTATION_INVALID, r"10\.1\.0\.300"),
        ([{"name": "net-a", "ips": ["224.0.0.1"]}], Reason.ANNOTATION_INVALID, r"224\.0\.0\.1"),
        ([{"name": "net-a", "ips": ["10.1.0.7"]}] * 2, Reason.ADDRESS_UNAVAILABLE, "two interfaces of the pod"),
        ([{"name": "net-a", "mac": "02:00:00:00:00:07"}] * 2, Reason.MAC_ADDRESS_TAKEN, "02:00:00:00:00:07"),
        ([{"name": "net-a", "mac": "01:00:5e:00:00:01"}], Reason.ANNOTATION_INVALID, "01:00:5e:00:00:01"),
        ([{"name": "net-a", "mac": "00:00:00:00:00:00"}], Reason.ANNOTATION_INVALID, "00:00:00:00:00:00"),
        (
            [{"name": "tiny"}] * 2,
            Reason.ADDRESSES_EXHAUSTED,
            "tiny-pod-network has capacity for 1 IPv4 interface",
        ),
        ([{"name": "tiny6"}] * 3, Reason.ADDRESSES_EXHAUSTED, "tiny6-pod-network has capacity for 2 IPv6 interfaces"),
    ],
)
def test_an_invalid_request_is_rejected_with_its_reason(
    described: list[dict[str, Any]], reason: Reason, culprit: str
) -> None:
    with pytest.raises(PodRefusedError, match=culprit) as caught:
        resolve(make_pod(networks=elements(*described)), *NADS)
    assert caught.value.reason is reason


@pytest.mark.parametrize(
    ("element", "problem"),
    [
        ({"name": "net-a", "ips": ["10.2.0.1"]}, r"it is not in a subnet of the network \(10\.1\.0\.0/16\)"),
        (
            {"name": "net-d", "ips": ["10.6.0.1"]},
            r"not in a subnet of the network \(10\.4\.0\.0/16, 10\.5\.0\.0/16, fd00:4::/64\)",
        ),
        ({"name": "net-a", "ips": ["fd00:4::7"]}, "the network has no IPv6 subnet"),
        ({"name": "net-a", "ips": ["10.1.0.1"]}, "it is the gateway"),
        ({"name": "net-a", "ips": ["10.1.0.0"]}, "it is the network address"),
        ({"name": "net-a", "ips": ["10.1.255.255"]}, "it is the broadcast address"),
        ({"name": "net-a", "ips": ["10.1.0.105"]}, "it is excluded"),
    ],
)
def test_a_pod_waits_if_the_network_can_never_allocate_the_address(element: dict[str, Any], problem: str) -> None:
    """The NAD may be recreated with other subnets."""
    name, address = element["name"], re.escape(element["ips"][0])
    with pytest.raises(
        PodWaitsError, match=f"^blue/{name}: address {address} cannot be allocated: .*{problem}$"
    ) as caught:
        resolve(make_pod(networks=elements(element)), *NADS)
    assert caught.value.reason is Reason.ADDRESS_UNAVAILABLE
    network = network_dependency(("default-domain", "k8s-blue", f"k8s-{name}-pod-network"))
    assert caught.value.dependencies == (nad_dependency(f"blue/{name}"), network, namespace_dependency("blue"))


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"ips": ["10.1.0.7"]}, Reason.ADDRESS_UNAVAILABLE),
        ({"mac": "02:00:00:00:00:07"}, Reason.MAC_ADDRESS_TAKEN),
    ],
)
def test_a_pod_waits_if_two_nads_of_one_network_request_the_same(asked: dict[str, Any], reason: Reason) -> None:
    """One of the NADs may be changed to refer to another network."""
    alias = make_nad("alias", cidr=None, network=reference("k8s-blue", "k8s-net-a-pod-network"))
    networks = elements({"name": "net-a", **asked}, {"name": "alias", **asked})
    with pytest.raises(PodWaitsError) as caught:
        resolve(make_pod(networks=networks), *NADS, alias)
    assert caught.value.reason is reason
    assert {nad_dependency("blue/net-a"), nad_dependency("blue/alias")} <= set(caught.value.dependencies)


def test_the_same_mac_in_two_networks_is_accepted() -> None:
    described = [{"name": name, "mac": "02:00:00:00:00:07"} for name in ("net-a", "net-d")]
    assert len(resolve(make_pod(networks=elements(*described)), *NADS).interfaces) == 3


def test_the_derived_mac_of_another_interface_is_accepted() -> None:
    """Another one is derived for that interface."""
    pod = make_pod(networks="net-a,net-a")
    derived = build(pod, *NADS).interfaces[2].mac
    described = elements({"name": "net-a", "mac": derived}, {"name": "net-a"})
    assert len(resolve(make_pod(networks=described), *NADS).interfaces) == 3


def test_a_pod_waits_if_the_gateway_does_not_fit_the_allocated_address() -> None:
    """The network has several subnets, and only the allocated address shows which one is used."""
    element = {"name": "net-d", "default-route": ["10.5.0.9"]}
    with pytest.raises(PodWaitsError, match=r"10\.5\.0\.9 cannot be the gateway of blue/net-d, .* 10\.4\.0\.2/16"):
        build(make_pod(networks=elements(element)), *NADS)
