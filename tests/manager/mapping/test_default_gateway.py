"""`opencontrail.org/default-gw` and the standard's `default-route`: at most one interface per family."""

import json
from typing import Any

import pytest

from contrail_config.objects import DefaultGateway
from manager.configuration import ManagerConfiguration, MetaPlugin, MetaPluginSettings, PodNetworkSettings
from manager.dependencies import nad_dependency, network_dependency
from manager.mapping.errors import PodRefusedError, PodWaitsError
from manager.reasons import Reason
from tests.support.catalogues import DEFAULTS, build, resolve
from tests.support.pods import FOREIGN_CONFIG, make_nad, make_pod, reference

BOTH, IPV4, IPV6, NONE = (
    DefaultGateway.BOTH,
    DefaultGateway.IPV4,
    DefaultGateway.IPV6,
    DefaultGateway.NONE,
)
DUAL = ManagerConfiguration(pod_network=PodNetworkSettings(subnets=("10.32.0.0/12", "fd00:32::/64")))
NADS = (
    make_nad("net-a", cidr="10.1.0.0/16"),
    make_nad("net-b", cidr="10.2.0.0/16"),
    make_nad("net-d", cidr="10.4.0.0/16,fd00:4::/64"),
    make_nad("net-6", cidr="fd00:6::/64"),
    make_nad("far", namespace="other", cidr="10.5.0.0/16"),
    make_nad("point", cidr="10.6.0.0/32"),
    make_nad("mac", config=FOREIGN_CONFIG),
    make_nad("alias", cidr=None, network=reference("k8s-blue", "k8s-net-b-pod-network")),
)


def requested_gateways(
    networks: str, default_gw: str | None = None, *, configuration: ManagerConfiguration = DEFAULTS
) -> list[DefaultGateway | None]:
    """Returns `default_gw` of each interface of a pod with these annotations."""
    pod = make_pod(networks=networks, default_gw=default_gw)
    return [each.default_gw for each in resolve(pod, *NADS, configuration=configuration).interfaces]


def elements(*described: dict[str, Any]) -> str:
    return json.dumps(described)


def test_without_a_request_default_gw_is_unset() -> None:
    assert requested_gateways("net-a,net-b") == [None, None, None]
    assert requested_gateways("net-a", "  ") == [None, None]


@pytest.mark.parametrize(
    ("networks", "wanted", "index"),
    [
        ("net-a@left,net-b", "left", 1),
        ("net-a,net-b", "eth0", 0),
        ("net-a,net-b", "eth2", 2),
        ("net-a,net-b", "net2", 2),
        ("net-a,net-a", "blue/net-a", 1),
        ("net-a,other/far", "other/far", 2),
        ("net-a,other/far", "far", 2),
        ("net-a,net-b", "net-b", 2),
        ("net-a", "default", 0),
        ("net-a,alias", "alias", 2),
        ("net-a,alias", "k8s-net-b-pod-network", 2),
        ("net-a", " net-a ", 1),
    ],
)
def test_an_interface_is_found_by_any_of_its_names(networks: str, wanted: str, index: int) -> None:
    chosen = requested_gateways(networks, wanted)
    assert chosen[index] is BOTH
    assert chosen.count(None) == len(chosen) - 1


@pytest.mark.parametrize(
    ("networks", "wanted", "index"),
    [
        ("net-a,net-b@net-a", "net-a", 2),  # an interface name takes precedence over a network name
        ("net-a@net2,net-b", "net2", 1),  # a requested name takes precedence over a Multus name
    ],
)
def test_the_kind_of_name_with_the_highest_precedence_matches(networks: str, wanted: str, index: int) -> None:
    assert requested_gateways(networks, wanted)[index] is BOTH


def test_attachments_are_counted_after_the_default_networks_of_multus() -> None:
    settings = MetaPluginSettings(MetaPlugin.MULTUS, default_networks=2)
    configuration = ManagerConfiguration(meta_plugin=settings)
    assert requested_gateways("net-a,net-b", "net4", configuration=configuration) == [None, None, BOTH]


@pytest.mark.parametrize(
    ("wanted", "culprit"),
    [
        ("eth3", "'eth3' is neither an interface nor a network of the pod: use one of eth0, eth1, net1, blue/net-a"),
        ("other/net-a", "'other/net-a'"),
        ("true", "'true'"),
        ("10.1.0.1", "'10.1.0.1'"),
    ],
)
def test_an_unknown_value_is_rejected(wanted: str, culprit: str) -> None:
    with pytest.raises(PodRefusedError, match=culprit) as caught:
        requested_gateways("net-a", wanted)
    assert caught.value.reason is Reason.ANNOTATION_INVALID


def test_a_pod_waits_if_the_chosen_network_has_no_gateway() -> None:
    with pytest.raises(PodWaitsError, match="k8s-point-pod-network of 'point' has no gateway") as caught:
        requested_gateways("point", "point")
    assert caught.value.reason is Reason.ANNOTATION_INVALID
    assert nad_dependency("blue/point") in caught.value.dependencies


def test_a_family_without_a_gateway_there_falls_to_the_lowest_index() -> None:
    assert requested_gateways("net-a", "net-a", configuration=DUAL) == [None, IPV4]
    assert requested_gateways("net-6", "net-6", configuration=DUAL) == [None, IPV6]
    assert requested_gateways("net-d", "net-d", configuration=DUAL) == [None, BOTH]
    assert requested_gateways("net-d,net-a", "net-a") == [None, None, IPV4]


def test_a_requested_gateway_becomes_the_gateway_of_the_interface() -> None:
    networks = elements({"name": "net-a", "default-route": ["10.1.0.9"]})
    pod = make_pod(networks=networks)
    assert requested_gateways(networks) == [None, BOTH]
    (_, interface) = build(pod, *NADS).interfaces
    assert interface.addresses[0].gateway == "10.1.0.9"


def test_gateways_of_both_families_can_be_requested() -> None:
    networks = elements({"name": "net-d", "default-route": ["fd00:4::9", "10.4.0.9"]})
    assert requested_gateways(networks, configuration=DUAL) == [None, BOTH]
    (_, interface) = build(make_pod(networks=networks), *NADS, configuration=DUAL).interfaces
    assert [address.gateway for address in interface.addresses] == ["10.4.0.9", "fd00:4::9"]


def test_a_gateway_of_one_family_does_not_affect_the_other() -> None:
    networks = elements({"name": "net-d", "default-route": ["fd00:4::9"]})
    assert requested_gateways(networks, configuration=DUAL) == [None, IPV6]


def test_the_default_network_may_request_the_other_family() -> None:
    pod = make_pod(
        networks=elements({"name": "net-d", "default-route": ["fd00:4::9"]}),
        default_network=elements({"name": "net-a", "default-route": ["10.1.0.9"]}),
    )
    assert [each.default_gw for each in resolve(pod, *NADS).interfaces] == [IPV4, IPV6]


def test_two_requests_for_one_family_are_rejected() -> None:
    pod = make_pod(
        networks=elements({"name": "net-b", "default-route": ["10.2.0.9"]}),
        default_network=elements({"name": "net-a", "default-route": ["10.1.0.9"]}),
    )
    with pytest.raises(PodRefusedError, match=r"10\.2\.0\.9: index 0 already requests"):
        resolve(pod, *NADS)


@pytest.mark.parametrize(
    ("element", "culprit"),
    [
        ({"name": "net-a", "default-route": ["10.1.0.5"], "ips": ["10.1.0.5"]}, "address of the same interface"),
        ({"name": "net-a", "default-route": ["x"]}, "'x'"),
        ({"name": "net-a", "default-route": ["10.1.0.1", "10.1.0.2"]}, "more than one IPv4 gateway"),
    ],
)
def test_an_invalid_gateway_is_rejected(element: dict[str, Any], culprit: str) -> None:
    with pytest.raises(PodRefusedError, match=culprit) as caught:
        requested_gateways(elements(element))
    assert caught.value.reason is Reason.ANNOTATION_INVALID


@pytest.mark.parametrize(
    ("gateway", "culprit"),
    [
        ("10.9.0.1", "10.9.0.1 .* not in a subnet of the network"),
        ("fd00:4::1", "fd00:4::1 .* not in a subnet of the network"),
        ("10.1.255.255", "10.1.255.255 .* broadcast"),
    ],
)
def test_a_pod_waits_if_the_gateway_does_not_fit_the_network(gateway: str, culprit: str) -> None:
    with pytest.raises(PodWaitsError, match=culprit) as caught:
        requested_gateways(elements({"name": "net-a", "default-route": [gateway]}))
    assert caught.value.reason is Reason.ANNOTATION_INVALID
    network = network_dependency(("default-domain", "k8s-blue", "k8s-net-a-pod-network"))
    assert {nad_dependency("blue/net-a"), network} <= set(caught.value.dependencies)


def test_an_empty_list_means_no_default_route() -> None:
    """Multus then removes the default routes of all interfaces."""
    assert requested_gateways(elements({"name": "net-a", "default-route": []}, {"name": "net-b"})) == [NONE, NONE, None]


def test_the_same_choice_in_both_annotations_is_no_conflict() -> None:
    networks = elements({"name": "net-a", "default-route": ["10.1.0.9"]})
    resolved = resolve(make_pod(networks=networks, default_gw="net-a"), *NADS)
    assert resolved.interfaces[1].default_gw is BOTH
    assert resolved.warnings == ()


@pytest.mark.parametrize("asked", [["10.1.0.9"], []])
def test_in_a_conflict_default_gw_takes_precedence_with_a_warning(asked: list[str]) -> None:
    networks = elements({"name": "net-a", "default-route": asked}, {"name": "net-b"})
    resolved = resolve(make_pod(networks=networks, default_gw="net-b"), *NADS)
    assert [each.default_gw for each in resolved.interfaces] == [None, None if asked else NONE, BOTH]
    (warning,) = resolved.warnings
    assert warning.reason is Reason.DEFAULT_GATEWAY_CONFLICT
    assert (
        warning.message == "opencontrail.org/default-gw: 'net-b' takes precedence over the default-route of blue/net-a"
    )


class TestAnAttachmentOfAnotherPlugin:
    """Under a meta plugin it may have `default-route`, too."""

    MULTUS = ManagerConfiguration(pod_network=DUAL.pod_network, meta_plugin=MetaPluginSettings(MetaPlugin.MULTUS))

    @pytest.mark.parametrize("gateways", [["192.0.2.1"], ["2001:db8::1"], ["192.0.2.1", "2001:db8::1"], []])
    def test_no_contrail_interface_has_an_unrequested_default_route(self, gateways: list[str]) -> None:
        networks = elements({"name": "net-d"}, {"name": "mac", "default-route": gateways})
        assert requested_gateways(networks, configuration=self.MULTUS) == [NONE, None]

    def test_default_gw_takes_precedence_with_a_warning(self) -> None:
        networks = elements({"name": "net-6"}, {"name": "mac", "default-route": ["192.0.2.1", "2001:db8::1"]})
        pod = make_pod(networks=networks, default_gw="net-6")
        resolved = resolve(pod, *NADS, configuration=self.MULTUS)
        assert [each.default_gw for each in resolved.interfaces] == [NONE, IPV6]
        assert [warning.reason for warning in resolved.warnings] == [Reason.DEFAULT_GATEWAY_CONFLICT]
        assert "takes precedence over the default-route of blue/mac" in resolved.warnings[0].message

    def test_a_foreign_attachment_without_default_route_has_no_effect(self) -> None:
        assert requested_gateways(elements({"name": "mac"}, {"name": "net-a"}), configuration=self.MULTUS) == [
            None,
            None,
        ]
