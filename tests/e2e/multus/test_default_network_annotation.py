"""Annotation `v1.multus-cni.io/default-network`: the pod selects the network of its interface with index 0."""

import pytest

from manager.mapping.annotations import DEFAULT_NETWORK_KEY
from tests.e2e.multus.attachment_matrix import MatrixRow
from tests.e2e.multus.attachments import assert_attached
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet


@pytest.mark.parametrize(
    ("chosen", "network", "gateways"),
    [
        ("demo/blue", "demo/blue", {"10.10.0.1": "eth0"}),
        ("yellow", "kube-system/yellow", {"10.15.0.1": "eth0"}),
        ("demo/green", "demo/green", {"10.12.0.1": "eth0", "fd00:12::1": "eth0"}),
        ("demo/bridge", "demo/bridge", {}),
    ],
    ids=["of a namespace", "bare", "dual stack", "foreign"],
)
def test_the_annotation_replaces_the_nodes_default_network(
    kubelet: Kubelet, cluster: Cluster, chosen: str, network: str, gateways: dict[str, str]
) -> None:
    sandbox = kubelet.sandbox("other/blue,blue", annotations={DEFAULT_NETWORK_KEY: chosen})
    sandbox.add().succeeded()
    own = {"net1": "other/blue", "net2": "demo/blue"}
    assert_attached(cluster, sandbox, MatrixRow("", "", own, default=network, gateways=gateways))
    sandbox.delete().succeeded()
