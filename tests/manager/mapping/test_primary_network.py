"""Index 0 is in the pod network, unless the pod or its namespace chooses another one."""

import json

import pytest

from manager.configuration import ManagerConfiguration, MetaPlugin, MetaPluginSettings
from manager.dependencies import nad_dependency, namespace_dependency
from manager.mapping.errors import PodRefusedError, PodWaitsError
from manager.mapping.interface_resolution import resolve_interfaces
from manager.mapping.interface_spec import InterfaceSpec
from manager.reasons import Reason
from manager.source import Nad, Pod
from tests.support.catalogues import DEFAULTS, make_catalogue
from tests.support.pods import FOREIGN_CONFIG, make_nad, make_pod, reference

MULTUS = ManagerConfiguration(meta_plugin=MetaPluginSettings(MetaPlugin.MULTUS))
NET_A = make_nad("net-a")
NET_B = make_nad("net-b", cidr="10.2.0.0/16")
SYSTEM = make_nad("net-a", namespace="kube-system", cidr="10.3.0.0/16")
FOREIGN = make_nad("mac", config=FOREIGN_CONFIG)

TO_A = reference("k8s-blue", "k8s-net-a-pod-network")
TO_B = reference("k8s-blue", "k8s-net-b-pod-network")


def primary(
    pod: Pod, *nads: Nad, configuration: ManagerConfiguration = DEFAULTS, of_namespace: str | None = None
) -> InterfaceSpec:
    catalogue = make_catalogue(*nads, configuration=configuration)
    if of_namespace is not None:
        catalogue.namespaces[pod.namespace] = {"opencontrail.org/network": of_namespace}
    return resolve_interfaces(pod, catalogue=catalogue, configuration=configuration).interfaces[0]


def test_index_0_is_in_the_pod_network_by_default() -> None:
    chosen = primary(make_pod())
    assert chosen.network.name == "default-domain:k8s-default:k8s-default-pod-network"
    assert (chosen.nad, chosen.config_name, chosen.attachment, chosen.interface) == (None, None, None, None)


def test_the_pod_can_choose_a_network_by_fq_name_without_a_nad() -> None:
    chosen = primary(make_pod(network=TO_A), NET_A)
    assert chosen.network.nad == "blue/net-a"
    assert chosen.nad is None


def test_the_pods_choice_takes_precedence_over_the_namespaces() -> None:
    assert primary(make_pod(), NET_A, NET_B, of_namespace=TO_A).network.nad == "blue/net-a"
    assert primary(make_pod(network=TO_B), NET_A, NET_B, of_namespace=TO_A).network.nad == "blue/net-b"


def test_a_default_network_of_the_contrail_plugin_is_used() -> None:
    chosen = primary(make_pod(default_network="blue/net-a"), NET_A)
    assert chosen.network.nad == "blue/net-a"
    assert (chosen.nad, chosen.config_name) == ("blue/net-a", "net-a")
    assert chosen.attachment is None


def test_a_default_network_without_namespace_is_looked_up_as_by_multus() -> None:
    pod = make_pod(default_network="net-a")
    assert primary(pod, NET_A, SYSTEM).nad == "blue/net-a"
    assert primary(pod, NET_A, SYSTEM, configuration=MULTUS).nad == "kube-system/net-a"


def test_a_default_network_may_request_addresses_and_a_mac() -> None:
    element = {"name": "net-a", "ips": ["10.1.0.7"], "mac": "02:00:00:00:00:07", "default-route": ["10.1.0.9"]}
    chosen = primary(make_pod(default_network=json.dumps([element])), NET_A)
    assert chosen.requested_addresses == ("10.1.0.7",)
    assert chosen.mac == "02:00:00:00:00:07"
    assert chosen.default_route == ("10.1.0.9",)


def test_a_default_network_of_another_plugin_is_left_to_multus() -> None:
    pod = make_pod(default_network="blue/mac")
    chosen = primary(pod, FOREIGN, configuration=MULTUS)
    assert (chosen.network.nad, chosen.nad) == (None, None)
    with pytest.raises(PodWaitsError, match="macvlan") as caught:
        primary(pod, FOREIGN)
    assert caught.value.reason is Reason.FOREIGN_NETWORK


def test_a_pod_waits_for_a_missing_default_network() -> None:
    with pytest.raises(PodWaitsError) as caught:
        primary(make_pod(default_network="blue/nope"))
    assert caught.value.dependencies == (nad_dependency("blue/nope"),)


@pytest.mark.parametrize(
    ("pod", "culprit"),
    [
        (make_pod(default_network="net-a,net-b"), "v1.multus-cni.io/default-network: 'net-a,net-b' names 2 networks"),
        (make_pod(default_network="net-a@left"), "v1.multus-cni.io/default-network: interface 'left'"),
        (make_pod(default_network="["), "v1.multus-cni.io/default-network: '\\['"),
        (make_pod(default_network="net-a,"), "v1.multus-cni.io/default-network, element 2"),
        (make_pod(network="net-a"), "opencontrail.org/network: 'net-a'"),
        (make_pod(network='{"domain": "d", "name": "n"}'), "project is missing"),
    ],
)
def test_an_invalid_choice_is_rejected(pod: Pod, culprit: str) -> None:
    with pytest.raises(PodRefusedError, match=culprit) as caught:
        primary(pod, NET_A, NET_B)
    assert caught.value.reason is Reason.ANNOTATION_INVALID


def test_a_pod_with_conflicting_choices_waits() -> None:
    """The NAD may be changed to refer to the other network."""
    with pytest.raises(
        PodWaitsError, match=r"'net-a' chooses .* but opencontrail.org/network chooses another one"
    ) as caught:
        primary(make_pod(default_network="net-a", network=TO_B), NET_A, NET_B)
    assert caught.value.reason is Reason.ANNOTATION_INVALID
    assert nad_dependency("blue/net-a") in caught.value.dependencies


def test_two_equal_choices_are_accepted() -> None:
    assert primary(make_pod(default_network="net-a", network=TO_A), NET_A).nad == "blue/net-a"


def test_pods_wait_while_the_annotation_of_their_namespace_is_invalid() -> None:
    with pytest.raises(PodWaitsError, match=r"namespace blue, opencontrail\.org/network") as caught:
        primary(make_pod(), of_namespace="nonsense")
    assert caught.value.dependencies == (namespace_dependency("blue"),)


def test_a_retired_network_accepts_no_pods() -> None:
    catalogue = make_catalogue(NET_A)
    (network,) = (each for each in catalogue.networks.values() if each.nad)
    catalogue.networks[network.fq_name] = network.__class__(
        fq_name=network.fq_name, uuid=network.uuid, subnets=network.subnets, nad=network.nad, retired=True
    )
    with pytest.raises(PodWaitsError, match="deleted with its last interface") as caught:
        resolve_interfaces(make_pod(network=TO_A), catalogue=catalogue, configuration=DEFAULTS)
    assert caught.value.reason is Reason.NETWORK_UNUSABLE
