"""An unsupported feature is rejected (multi-network standard v1.3), not silently ignored."""

import json
import re
from typing import Any

import pytest

from manager.parsing.errors import AnnotationError
from manager.parsing.networks import parse_networks
from manager.parsing.quoting import quoted

UNSUPPORTED = {
    "infiniband-guid": "c2:11:22:33:44:55:66:77",
    "bandwidth": {"ingressRate": 1000, "ingressBurst": 1000},
    "portMappings": [{"hostPort": 8080, "containerPort": 80}],
    "deviceID": "0000:01:00.0",
    "ipam-claim-reference": "claim-a",
}


def annotation(*elements: dict[str, Any]) -> str:
    return json.dumps(elements)


@pytest.mark.parametrize("key", UNSUPPORTED)
def test_an_unsupported_feature_is_rejected_with_key_and_value(key: str) -> None:
    text = annotation({"name": "net-a"}, {"name": "net-b", key: UNSUPPORTED[key]})
    with pytest.raises(AnnotationError) as caught:
        parse_networks(text, namespace="shop")
    message = f"k8s.v1.cni.cncf.io/networks, element 2: {key}: {quoted(UNSUPPORTED[key])} is not supported"
    assert str(caught.value) == message


@pytest.mark.parametrize("key", UNSUPPORTED)
@pytest.mark.parametrize("empty", [None, "", [], {}])
def test_an_empty_unsupported_feature_counts_as_absent(key: str, empty: Any) -> None:
    assert parse_networks(annotation({"name": "net-a", key: empty}), namespace="shop")[0].unsupported == ()


def test_more_than_one_address_per_family_is_rejected() -> None:
    text = annotation({"name": "net-a", "ips": ["10.1.1.5", "fd00::5", "10.1.1.6"]})
    with pytest.raises(AnnotationError, match=r"ips: more than one IPv4 address \(10.1.1.5, 10.1.1.6\)"):
        parse_networks(text, namespace="shop")


@pytest.mark.parametrize(
    ("mac", "reason"),
    [
        ("00-00-5E-00-01-00", "'00:00:5e:00:01:00' is reserved for gateways"),
        ("0e00.c000.0202", "'0e:00:c0:00:02:02' is reserved for nodes"),
    ],
)
def test_a_mac_that_gateways_or_nodes_have_is_rejected_with_the_reason(mac: str, reason: str) -> None:
    problem = f"mac: {reason}: use another MAC address"
    with pytest.raises(AnnotationError, match=rf"element 1: {re.escape(problem)}$"):
        parse_networks(annotation({"name": "net-a", "mac": mac}), namespace="shop")
    with pytest.raises(AnnotationError, match=rf"element 1: cni-args.{re.escape(problem)}$"):
        parse_networks(annotation({"name": "net-a", "cni-args": {"mac": mac}}), namespace="shop")


def test_another_plugins_network_may_have_a_mac_that_is_reserved_in_ours() -> None:
    (selection,) = parse_networks(
        annotation({"name": "net-a", "mac": "0e:00:00:00:00:01"}), namespace="shop", defer_unsupported=True
    )
    assert selection.unsupported == ("mac: '0e:00:00:00:00:01' is reserved for nodes: use another MAC address",)


def test_unsupported_features_can_be_returned_to_the_caller() -> None:
    text = annotation({"name": "a", "deviceID": "x", "ips": ["10.1.1.5", "10.1.1.6"]}, {"name": "b"})
    first, second = parse_networks(text, namespace="shop", defer_unsupported=True)
    assert first.unsupported == (
        "deviceID: 'x' is not supported",
        "ips: more than one IPv4 address (10.1.1.5, 10.1.1.6) is not supported",
    )
    assert first.ips == ("10.1.1.5", "10.1.1.6")
    assert second.unsupported == ()


@pytest.mark.parametrize("gateways", [[], ["10.1.1.1"], ["fd00::1"], ["10.1.1.1", "fd00::1"]])
def test_a_default_route_can_be_requested_in_either_family_or_none(gateways: list[str]) -> None:
    text = annotation({"name": "a", "default-route": gateways}, {"name": "b"})
    first, second = parse_networks(text, namespace="shop")
    assert first.default_route == tuple(gateways)
    assert second.default_route is None


@pytest.mark.parametrize(
    ("gateways", "reason"),
    [
        (["10.1.1.1", "10.1.1.2"], "more than one IPv4 gateway"),
        (["fd00::1", "10.1.1.1", "fd00::2"], "more than one IPv6 gateway"),
        ("10.1.1.1", "'10.1.1.1' is not a JSON list"),
        (["10.1.1.0/24"], "'10.1.1.0/24' is not an IP address"),
        (["0.0.0.0"], "'0.0.0.0' is not a unicast address"),
        ([7], "7 is not an IP address"),
    ],
)
def test_an_invalid_default_route_is_rejected(gateways: Any, reason: str) -> None:
    with pytest.raises(AnnotationError, match=r"element 1: default-route: ") as caught:
        parse_networks(annotation({"name": "a", "default-route": gateways}), namespace="shop")
    assert reason in str(caught.value)


@pytest.mark.parametrize("second", [[], ["10.1.1.2"], ["fd00::1"]])
def test_only_one_element_may_have_a_default_route(second: list[str]) -> None:
    text = annotation(
        {"name": "a", "default-route": ["10.1.1.1"]}, {"name": "b"}, {"name": "c", "default-route": second}
    )
    with pytest.raises(AnnotationError, match=r"element 3: default-route: .* element 1 already has this key"):
        parse_networks(text, namespace="shop")
