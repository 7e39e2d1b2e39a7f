"""`opencontrail.org/default-gw` and the standard's `default-route`: at most one interface for each family."""

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


def answers(
    networks: str, default_gw: str | None = None, *, configuration: ManagerConfiguration = DEFAULTS
) -> list[DefaultGateway | None]:
    """`default_gw` of each interface of a pod with these annotations."""
    pod = make_pod(networks=networks, default_gw=default_gw)
    return [each.default_gw for each in resolve(pod, *NADS, configuration=configuration).interfaces]


def elements(*described: dict[str, Any]) -> str:
    return json.dumps(described)


def test_without_a_request_nothing_is_said() -> None:
    assert answers("net-a,net-b") == [None, None, None]
    assert answers("net-a", "  ") == [None, None]


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
def test_it_is_found_by_any_of_its_names(networks: str, wanted: str, index: int) -> None:
    chosen = answers(networks, wanted)
    assert chosen[index] is BOTH
    assert chosen.count(None) == len(chosen) - 1


@pytest.mark.parametrize(
    ("networks", "wanted", "index"),
    [
        ("net-a,net-b@net-a", "net-a", 2),  # an interface that is called so, before a network
        ("net-a@net2,net-b", "net2", 1),  # a name that was asked for, before the one that Multus would give
    ],
)
def test_the_first_way_that_fits_counts(networks: str, wanted: str, index: int) -> None:
    assert answers(networks, wanted)[index] is BOTH


def test_attachments_are_counted_after_the_default_networks_of_multus() -> None:
    settings = MetaPluginSettings(MetaPlugin.MULTUS, default_networks=2)
    configuration = ManagerConfiguration(meta_plugin=settings)
    assert answers("net-a,net-b", "net4", configuration=configuration) == [None, None, BOTH]


@pytest.mark.parametrize(
    ("wanted", "culprit"),
    [
        ("eth3", "'eth3' is neither an interface nor a network of the pod: use one of eth0, eth1, net1, blue/net-a"),
        ("other/net-a", "'other/net-a'"),
        ("true", "'true'"),
        ("10.1.0.1", "'10.1.0.1'"),
    ],
)
def test_a_value_that_fits_nothing_is_refused_by_name(wanted: str, culprit: str) -> None:
    with pytest.raises(PodRefusedError, match=culprit) as caught:
        answers("net-a", wanted)
    assert caught.value.reason is Reason.ANNOTATION_INVALID


def test_a_network_without_a_gateway_can_be_chosen_once_it_has_one() -> None:
    with pytest.raises(PodWaitsError, match="k8s-point-pod-network of 'point' has no gateway") as caught:
        answers("point", "point")
    assert caught.value.reason is Reason.ANNOTATION_INVALID
    assert nad_dependency("blue/point") in caught.value.dependencies


def test_a_family_that_the_chosen_interface_lacks_is_left_to_the_lowest_index() -> None:
    assert answers("net-a", "net-a", configuration=DUAL) == [None, IPV4]
    assert answers("net-6", "net-6", configuration=DUAL) == [None, IPV6]
    assert answers("net-d", "net-d", configuration=DUAL) == [None, BOTH]
    assert answers("net-d,net-a", "net-a") == [None, None, IPV4]


def test_a_gateway_that_was_asked_for_is_served_as_the_interfaces_own() -> None:
    networks = elements({"name": "net-a", "default-route": ["10.1.0.9"]})
    pod = make_pod(networks=networks)
    assert answers(networks) == [None, BOTH]
    (_, interface) = build(pod, *NADS).interfaces
    assert interface.addresses[0].gateway == "10.1.0.9"


def test_gateways_of_both_families_are_served() -> None:
    networks = elements({"name": "net-d", "default-route": ["fd00:4::9", "10.4.0.9"]})
    assert answers(networks, configuration=DUAL) == [None, BOTH]
    (_, interface) = build(make_pod(networks=networks), *NADS, configuration=DUAL).interfaces
    assert [address.gateway for address in interface.addresses] == ["10.4.0.9", "fd00:4::9"]


def test_a_gateway_of_one_family_leaves_the_other_alone() -> None:
    networks = elements({"name": "net-d", "default-route": ["fd00:4::9"]})
    assert answers(networks, configuration=DUAL) == [None, IPV6]


def test_the_default_network_may_ask_as_well_for_another_family() -> None:
    pod = make_pod(
        networks=elements({"name": "net-d", "default-route": ["fd00:4::9"]}),
        default_network=elements({"name": "net-a", "default-route": ["10.1.0.9"]}),
    )
    assert [each.default_gw for each in resolve(pod, *NADS).interfaces] == [IPV4, IPV6]


def test_two_elements_that_ask_for_one_family_are_refused() -> None:
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
def test_a_gateway_that_cannot_be_is_refused(element: dict[str, Any], culprit: str) -> None:
    with pytest.raises(PodRefusedError, match=culprit) as caught:
        answers(elements(element))
    assert caught.value.reason is Reason.ANNOTATION_INVALID


@pytest.mark.parametrize(
    ("gateway", "culprit"),
    [
        ("10.9.0.1", "10.9.0.1 .* not in a subnet of the network"),
        ("fd00:4::1", "fd00:4::1 .* not in a subnet of the network"),
        ("10.1.255.255", "10.1.255.255 .* broadcast"),
    ],
)
def test_a_gateway_that_does_not_fit_the_network_is_waited_for(gateway: str, culprit: str) -> None:
    with pytest.raises(PodWaitsError, match=culprit) as caught:
        answers(elements({"name": "net-a", "default-route": [gateway]}))
    assert caught.value.reason is Reason.ANNOTATION_INVALID
    network = network_dependency(("default-domain", "k8s-blue", "k8s-net-a-pod-network"))
    assert {nad_dependency("blue/net-a"), network} <= set(caught.value.dependencies)


def test_an_empty_list_says_that_there_is_no_default_route_at_all() -> None:
    """Multus takes the default routes of all interfaces away then."""
    assert answers(elements({"name": "net-a", "default-route": []}, {"name": "net-b"})) == [NONE, NONE, None]


def test_the_same_choice_twice_is_no_conflict() -> None:
    networks = elements({"name": "net-a", "default-route": ["10.1.0.9"]})
    resolved = resolve(make_pod(networks=networks, default_gw="net-a"), *NADS)
    assert resolved.interfaces[1].default_gw is BOTH
    assert resolved.warnings == ()


@pytest.mark.parametrize("asked", [["10.1.0.9"], []])
def test_where_they_contradict_each_other_default_gw_holds_and_is_told(asked: list[str]) -> None:
    networks = elements({"name": "net-a", "default-route": asked}, {"name": "net-b"})
    resolved = resolve(make_pod(networks=networks, default_gw="net-b"), *NADS)
    assert [each.default_gw for each in resolved.interfaces] == [None, None if asked else NONE, BOTH]
    (warning,) = resolved.warnings
    assert warning.reason is Reason.DEFAULT_GATEWAY_CONFLICT
    assert (
        warning.message == "opencontrail.org/default-gw: 'net-b' takes precedence over the default-route of blue/net-a"
    )


class TestAnAttachmentOfAnotherPlugin:
    """Under a meta plugin it may carry `default-route`, too."""

    MULTUS = ManagerConfiguration(pod_network=DUAL.pod_network, meta_plugin=MetaPluginSettings(MetaPlugin.MULTUS))

    @pytest.mark.parametrize("gateways", [["192.0.2.1"], ["2001:db8::1"], ["192.0.2.1", "2001:db8::1"], []])
    def test_none_of_ours_has_one_that_nobody_asked_for(self, gateways: list[str]) -> None:
        networks = elements({"name": "net-d"}, {"name": "mac", "default-route": gateways})
        assert answers(networks, configuration=self.MULTUS) == [NONE, None]

    def test_the_more_deliberate_request_stands_over_it_with_a_warning(self) -> None:
        networks = elements({"name": "net-6"}, {"name": "mac", "default-route": ["192.0.2.1", "2001:db8::1"]})
        pod = make_pod(networks=networks, default_gw="net-6")
        resolved = resolve(pod, *NADS, configuration=self.MULTUS)
        assert [each.default_gw for each in resolved.interfaces] == [NONE, IPV6]
        assert [warning.reason for warning in resolved.warnings] == [Reason.DEFAULT_GATEWAY_CONFLICT]
        assert "takes precedence over the default-route of blue/mac" in resolved.warnings[0].message

    def test_without_the_key_it_changes_nothing(self) -> None:
        assert answers(elements({"name": "mac"}, {"name": "net-a"}), configuration=self.MULTUS) == [None, None]
