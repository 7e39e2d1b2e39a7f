"""`defaultNetworks` of Multus: attached before a pod's own networks, which shifts the numbers of these."""

from collections.abc import Iterator

import pytest

from tests.e2e.multus import leftovers
from tests.e2e.multus.attachment_matrix import MatrixRow
from tests.e2e.multus.attachments import assert_attached
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet
from tests.e2e.multus.node import default_network
from tests.e2e.node import NETWORK

DEFAULTS = default_network(NETWORK, "extra-1", "extra-2")
EXTRAS = {"net1": "kube-system/extra-1", "net2": "kube-system/extra-2"}


@pytest.fixture(scope="module", autouse=True)
def _manager_with_two_default_networks(cluster: Cluster) -> Iterator[None]:
    cluster.start_manager(**{"default-networks": 2})
    yield
    cluster.start_manager()


def test_the_pods_own_networks_are_numbered_after_the_default_ones(kubelet: Kubelet, cluster: Cluster) -> None:
    sandbox = kubelet.sandbox("blue,bridge,other/blue,blue", **DEFAULTS)
    sandbox.add().succeeded()
    own = {"net3": "demo/blue", "net4": "demo/bridge", "net5": "other/blue", "net6": "demo/blue"}
    assert_attached(cluster, sandbox, MatrixRow("", "", EXTRAS | own))


def test_pods_of_system_namespaces_get_no_default_networks(kubelet: Kubelet, cluster: Cluster) -> None:
    sandbox = kubelet.sandbox("yellow,demo/blue", namespace="kube-system", **DEFAULTS)
    sandbox.add().succeeded()
    assert_attached(cluster, sandbox, MatrixRow("", "", {"net1": "kube-system/yellow", "net2": "demo/blue"}))


def test_a_default_network_of_this_plugin_is_rejected_with_the_pods_networks(kubelet: Kubelet) -> None:
    """The manager creates only interfaces that pods request, and no pod requested this one."""
    sandbox = kubelet.sandbox("blue", **default_network(NETWORK, "yellow", "extra-1"))
    message = sandbox.add().failed()
    assert "the pod has no interface in network yellow" in message
    assert "demo/blue" in message
    assert leftovers.of_this_plugin(sandbox) == []


def test_attachments_with_unexpected_numbers_are_rejected(kubelet: Kubelet) -> None:
    sandbox = kubelet.sandbox("blue,other/blue")
    message = sandbox.add().failed()
    assert "attachment net1 of network blue is not expected" in message
    assert "demo/blue" in message
    assert "other/blue" in message
    assert leftovers.of_this_plugin(sandbox) == []


def test_networks_used_once_are_served_with_any_numbering(kubelet: Kubelet, cluster: Cluster) -> None:
    sandbox = kubelet.sandbox("blue,green")
    sandbox.add().succeeded()
    assert_attached(cluster, sandbox, MatrixRow("", "", {"net1": "demo/blue", "net2": "demo/green"}))
