"""`default-route` of a network selection, implemented by this plugin, as Multus's implementation fails silently.

Multus deletes no default route of a delegate, since it searches for a form that its library no longer returns, and it
ignores the error when adding a route fails because another one exists (k8snetworkplumbingwg/multus-cni, issue 1444).
Therefore the interfaces have the right routes before Multus changes them.
"""

import pytest

from tests.e2e.multus.attachment_matrix import MatrixRow
from tests.e2e.multus.attachments import assert_attached, check_attachment
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet
from tests.e2e.multus.node import FOREIGN_DEFAULT
from tests.e2e.node import NETWORK

FOUR, SIX = {"10.32.0.1": "eth0"}, {"fd00:32::1": "eth0"}


@pytest.mark.parametrize(
    ("asked", "gateways"),
    [
        (["10.12.0.1"], {"10.12.0.1": "net1"} | SIX),
        (["fd00:12::1"], FOUR | {"fd00:12::1": "net1"}),
        (["10.12.0.1", "fd00:12::1"], {"10.12.0.1": "net1", "fd00:12::1": "net1"}),
        (["10.12.77.7"], {"10.12.77.7": "net1"} | SIX),
        ([], {}),
    ],
    ids=["IPv4", "IPv6", "both", "another gateway", "none at all"],
)
def test_a_requested_default_route_uses_this_plugins_interface(
    kubelet: Kubelet, cluster: Cluster, asked: list[str], gateways: dict[str, str]
) -> None:
    networks = [{"name": "green", "default-route": asked}, {"name": "blue"}]
    row = MatrixRow("", networks, {"net1": "demo/green", "net2": "demo/blue"}, gateways=gateways)
    attach_and_check(kubelet, cluster, row)


@pytest.mark.parametrize(
    ("asked", "gateways"),
    [(["10.90.0.99"], {"10.90.0.99": "net2"}), ([], {})],
    ids=["IPv4", "none at all"],
)
def test_a_requested_default_route_uses_another_plugins_interface(
    kubelet: Kubelet, cluster: Cluster, asked: list[str], gateways: dict[str, str]
) -> None:
    networks = [{"name": "blue"}, {"name": "bridge", "default-route": asked}]
    row = MatrixRow("", networks, {"net1": "demo/blue", "net2": "demo/bridge"}, gateways=gateways)
    attach_and_check(kubelet, cluster, row)


def test_a_requested_default_route_replaces_that_of_a_foreign_default_network(
    kubelet: Kubelet, cluster: Cluster
) -> None:
    networks = [{"name": "green", "default-route": ["10.12.0.1"]}]
    row = MatrixRow("", networks, {"net1": "demo/green"}, default=FOREIGN_DEFAULT, gateways={"10.12.0.1": "net1"})
    attach_and_check(kubelet, cluster, row)


def attach_and_check(kubelet: Kubelet, cluster: Cluster, row: MatrixRow) -> None:
    sandbox = kubelet.sandbox(row.networks, **row.settings)
    sandbox.add().succeeded()
    assert_attached(cluster, sandbox, row)
    sandbox.check().succeeded()
    for name, network in row.everything.items():
        if network in (NETWORK, "demo/green", "demo/blue"):
            check_attachment(sandbox, name).succeeded()
