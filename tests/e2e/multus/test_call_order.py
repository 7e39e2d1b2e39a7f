"""Calls for a pod's attachments in random order, repeated and interleaved, which no meta plugin does.

The calls have the form of Multus's calls, with the configurations that it derives from NADs.
"""

import random
from collections.abc import Mapping
from typing import Any

from tests.e2e.interfaces import interfaces
from tests.e2e.multus import leftovers
from tests.e2e.multus.attachment_matrix import MatrixRow
from tests.e2e.multus.attachments import allocated_interfaces, our_interfaces
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet
from tests.e2e.multus.node_kinds import THIN, only_on
from tests.e2e.multus.runtime import Outcome, Sandbox, call
from tests.e2e.node import NETWORK

pytestmark = only_on(THIN)  # Multus itself is not called

NETWORKS = "blue,other/blue,bridge,blue,blue,green"
ROW = MatrixRow(
    "",
    NETWORKS,
    {"net1": "demo/blue", "net2": "other/blue", "net4": "demo/blue", "net5": "demo/blue", "net6": "demo/green"},
)


def attachment(sandbox: Sandbox, command: str, ifname: str) -> Outcome:
    """One call for one attachment, in the form of Multus's calls."""
    network = ROW.everything[ifname]
    config: Mapping[str, Any] = {"cniVersion": "1.0.0", "type": NETWORK, "name": network.rpartition("/")[2]}
    return call(sandbox.node, sandbox.variables(command, ifname), config)


def in_random_order() -> list[str]:
    names = our_interfaces(ROW)
    return random.sample(names, len(names))


def test_each_attachment_gets_its_interface_in_random_order_of_adds(kubelet: Kubelet, cluster: Cluster) -> None:
    sandbox = kubelet.sandbox(NETWORKS)
    for name in (order := in_random_order()):
        attachment(sandbox, "ADD", name).succeeded()
    assert interfaces(sandbox.ip) == allocated_interfaces(cluster, sandbox, ROW), order
    for name in in_random_order():
        attachment(sandbox, "DEL", name).succeeded()


def test_del_of_one_attachment_does_not_affect_the_others(kubelet: Kubelet, cluster: Cluster) -> None:
    sandbox = kubelet.sandbox(NETWORKS)
    for name in in_random_order():
        attachment(sandbox, "ADD", name).succeeded()
    left = allocated_interfaces(cluster, sandbox, ROW)
    for name in in_random_order():
        attachment(sandbox, "DEL", name).succeeded()
        attachment(sandbox, "DEL", name).succeeded()
        del left[name]
        assert interfaces(sandbox.ip) == left
        assert len(sandbox.ports) == len(left)
    assert leftovers.of_sandbox(sandbox) == []


def test_a_detached_attachment_is_restored_unchanged_by_add(kubelet: Kubelet, cluster: Cluster) -> None:
    sandbox = kubelet.sandbox(NETWORKS)
    for name in in_random_order():
        attachment(sandbox, "ADD", name).succeeded()
    for name in ("net4", "net1"):
        attachment(sandbox, "DEL", name).succeeded()
    for name in ("net1", "net4"):
        attachment(sandbox, "ADD", name).succeeded()
    assert interfaces(sandbox.ip) == allocated_interfaces(cluster, sandbox, ROW)
    for name in in_random_order():
        attachment(sandbox, "DEL", name).succeeded()


def test_an_excess_attachment_is_rejected_with_the_attachment_that_has_the_interface(kubelet: Kubelet) -> None:
    sandbox = kubelet.sandbox("green")
    attachment(sandbox, "ADD", "net6").succeeded()
    config = {"cniVersion": "1.0.0", "type": NETWORK, "name": "green"}
    message = call(sandbox.node, sandbox.variables("ADD", "net7"), config).failed()
    assert "are taken" in message
    assert "by net6" in message
    attachment(sandbox, "DEL", "net6").succeeded()
