"""Rule 4: index 0 is in the pod network, followed by one interface per reference, in order."""

import json

import pytest

from manager.dependencies import nad_dependency, network_dependency
from manager.mapping.catalogue import UnusableNad
from manager.mapping.errors import PodRefusedError, PodWaitsError
from manager.mapping.interface_resolution import resolve_interfaces
from manager.reasons import Reason
from tests.support.catalogues import DEFAULTS, build, make_catalogue, resolve
from tests.support.pods import make_nad, make_pod, reference

NAD_A = make_nad("net-a", cidr="10.1.0.0/16")
NAD_B = make_nad("net-b", cidr="10.2.0.0/16")
NAD_C = make_nad("net-c", namespace="other-ns", cidr="10.3.0.0/16")


@pytest.mark.parametrize(
    ("networks", "nads"),
    [
        (None, []),
        ("", []),
        ("net-a,net-b", ["blue/net-a", "blue/net-b"]),
        ("net-b,net-a", ["blue/net-b", "blue/net-a"]),
        ("net-a, net-a,net-a", ["blue/net-a", "blue/net-a", "blue/net-a"]),
        ("net-b,other-ns/net-c@left,net-b", ["blue/net-b", "other-ns/net-c", "blue/net-b"]),
        ('[{"name": "net-a"}, {"name": "other-ns/net-c"}]', ["blue/net-a", "other-ns/net-c"]),
        ('[{"name": "net-c", "namespace": "other-ns"}]', ["other-ns/net-c"]),
    ],
)
def test_each_reference_has_one_interface_in_order(networks: str | None, nads: list[str]) -> None:
    interfaces = resolve(make_pod(networks=networks), NAD_A, NAD_B, NAD_C).interfaces
    assert [each.nad for each in interfaces] == [None, *nads]
    assert interfaces[0].network.fq_name == ("default-domain", "k8s-default", "k8s-default-pod-network")


def test_networks_have_the_names_of_upstream() -> None:
    machine = build(make_pod(networks="net-a,other-ns/net-c"), NAD_A, NAD_C)
    assert [":".join(interface.network) for interface in machine.interfaces] == [
        "default-domain:k8s-default:k8s-default-pod-network",
        "default-domain:k8s-blue:k8s-net-a-pod-network",
        "default-domain:k8s-other-ns:k8s-net-c-pod-network",
    ]


def test_an_attachment_has_the_names_that_multus_uses() -> None:
    """The numbered or requested interface name, and the name in `spec.config`, which may differ from the NAD's."""
    named = make_nad("net-a", config='{"type": "contrail-k8s-cni", "name": "left-network"}')
    interfaces = resolve(make_pod(networks="net-a,net-b@right,net-a"), named, NAD_B).interfaces
    assert [each.attachment for each in interfaces] == [None, "net1", "right", "net3"]
    assert [each.interface for each in interfaces] == [None, None, "right", None]
    assert [each.config_name for each in interfaces] == [None, "left-network", "net-b", "left-network"]


def test_a_nad_can_be_an_alias_of_a_network() -> None:
    nad = make_nad("alias", cidr=None, network=reference("k8s-blue", "k8s-net-a-pod-network"))
    interfaces = resolve(make_pod(networks="alias"), NAD_A, nad).interfaces
    assert interfaces[1].network.nad == "blue/net-a"
    assert interfaces[1].nad == "blue/alias"


def test_all_missing_nads_are_reported_at_once() -> None:
    with pytest.raises(PodWaitsError) as caught:
        resolve(make_pod(networks="net-a,nope,other-ns/neither,nope"), NAD_A)
    assert caught.value.reason is Reason.NETWORK_NOT_FOUND
    assert str(caught.value) == (
        "network attachment definition blue/nope not found; network attachment definition other-ns/neither not found"
    )
    assert caught.value.dependencies == (nad_dependency("blue/nope"), nad_dependency("other-ns/neither"))


def test_a_pod_waits_for_a_missing_network() -> None:
    nad = make_nad("alias", cidr=None, network=reference("p", "n", domain="d"))
    with pytest.raises(PodWaitsError) as caught:
        resolve(make_pod(networks="alias"), nad)
    assert caught.value.reason is Reason.NETWORK_NOT_FOUND
    assert str(caught.value) == "network attachment definition blue/alias: network d:p:n not found"
    assert set(caught.value.dependencies) == {nad_dependency("blue/alias"), network_dependency(("d", "p", "n"))}


def test_an_unusable_nad_is_reported_with_its_problem() -> None:
    catalogue = make_catalogue()
    catalogue.nads["blue/net-a"] = UnusableNad("opencontrail.org/cidr: 'x' is not a CIDR")
    with pytest.raises(PodWaitsError, match=r"blue/net-a cannot be used: opencontrail.org/cidr: 'x' is not a CIDR"):
        resolve_interfaces(make_pod(networks="net-a"), catalogue=catalogue, configuration=DEFAULTS)


@pytest.mark.parametrize(
    ("networks", "culprit"),
    [
        ("net-a,", "element 2"),
        ("NET_A", "'NET_A'"),
        ('[{"nam": "net-a"}]', "name is missing"),
        ('[{"name": "net-a", "mac": "02:00"}]', "'02:00'"),
        ('[{"name": "net-a", "ips": ["10.1.0"]}]', "'10.1.0'"),
        ('{"name": "net-a"}', "JSON list"),
        ("[", "valid JSON"),
    ],
)
def test_an_invalid_annotation_is_rejected_with_key_and_value(networks: str, culprit: str) -> None:
    with pytest.raises(PodRefusedError, match=r"k8s\.v1\.cni\.cncf\.io/networks") as caught:
        resolve(make_pod(networks=networks), NAD_A)
    assert caught.value.reason is Reason.ANNOTATION_INVALID
    assert culprit in str(caught.value)


def test_an_unsupported_feature_of_a_contrail_network_is_rejected() -> None:
    pod = make_pod(networks=json.dumps([{"name": "net-a", "bandwidth": {"ingressRate": 1000}}]))
    with pytest.raises(PodRefusedError, match="bandwidth") as caught:
        resolve(pod, NAD_A)
    assert caught.value.reason is Reason.ANNOTATION_INVALID


def test_a_reserved_mac_in_a_contrail_network_is_rejected_with_element_value_and_reason() -> None:
    pod = make_pod(networks=json.dumps([{"name": "net-a", "mac": "00:00:5e:00:01:00"}]))
    with pytest.raises(PodRefusedError) as caught:
        resolve(pod, NAD_A)
    assert caught.value.reason is Reason.ANNOTATION_INVALID
    problem = "mac: '00:00:5e:00:01:00' is reserved for gateways: use another MAC address"
    assert str(caught.value).startswith("k8s.v1.cni.cncf.io/networks, ")
    assert str(caught.value).endswith(f"/net-a: {problem}")


def test_a_static_pod_keeps_its_config_hash() -> None:
    assert build(make_pod(config_hash="cafe")).config_hash == "cafe"
