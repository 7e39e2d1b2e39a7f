"""With namespace isolation, a pod can use networks of its own and of the global namespaces only."""

import pytest

from contrail_config.objects import FqName
from manager.configuration import ManagerConfiguration, NamespaceIsolation
from manager.mapping.errors import PodRefusedError
from manager.mapping.isolation import may_use_network
from manager.reasons import Reason
from manager.source import Pod
from tests.support.catalogues import resolve
from tests.support.pods import make_nad, make_pod, reference

ISOLATED = ManagerConfiguration(
    namespace_isolation=NamespaceIsolation(enabled=True, global_namespaces=("default", "shared"))
)
NADS = (
    make_nad("own"),
    make_nad("net", namespace="shared", cidr="10.2.0.0/16"),
    make_nad("net", namespace="red", cidr="10.3.0.0/16"),
)
POD_NETWORK = reference("k8s-default", "k8s-default-pod-network")


@pytest.mark.parametrize(
    "pod",
    [
        make_pod(networks="own,shared/net"),
        make_pod(default_network="shared/net"),
        make_pod(network=reference("k8s-shared", "k8s-net-pod-network")),
        make_pod(network=POD_NETWORK),
        make_pod(networks="net", namespace="red"),
    ],
)
def test_own_and_global_networks_are_allowed(pod: Pod) -> None:
    assert resolve(pod, *NADS, configuration=ISOLATED).interfaces


@pytest.mark.parametrize(
    ("pod", "culprit"),
    [
        (make_pod(networks="own,red/net"), "k8s.v1.cni.cncf.io/networks: .* blue to use NAD red/net"),
        (make_pod(networks="red/nothing-there"), "to use NAD red/nothing-there"),
        (make_pod(default_network="red/net"), "v1.multus-cni.io/default-network: .* to use NAD red/net"),
        (
            make_pod(network=reference("k8s-red", "k8s-net-pod-network")),
            "opencontrail.org/network: .* to use network default-domain:k8s-red:k8s-net-pod-network",
        ),
        (make_pod(network=reference("k8s-blue", "own", domain="elsewhere")), "elsewhere:k8s-blue:own"),
    ],
)
def test_a_network_of_another_namespace_is_rejected(pod: Pod, culprit: str) -> None:
    with pytest.raises(PodRefusedError, match=culprit) as caught:
        resolve(pod, *NADS, configuration=ISOLATED)
    assert caught.value.reason is Reason.NETWORK_FORBIDDEN


def test_without_isolation_all_namespaces_are_allowed() -> None:
    assert len(resolve(make_pod(networks="own,red/net"), *NADS).interfaces) == 3


@pytest.mark.parametrize(
    ("own", "network", "allowed"),
    [
        ("blue", ("default-domain", "k8s-blue", "any"), True),
        ("blue", ("default-domain", "k8s-default", "any"), True),
        ("blue", ("default-domain", "k8s-red", "any"), False),
        ("blue", ("default-domain", "k8s-blue-2", "any"), False),
        ("shared", ("default-domain", "k8s-red", "any"), False),
    ],
)
def test_isolation_applies_to_nads_as_to_pods(own: str, network: FqName, allowed: bool) -> None:
    assert may_use_network(ISOLATED, own=own, network=network) is allowed
