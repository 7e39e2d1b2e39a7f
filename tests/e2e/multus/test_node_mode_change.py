"""Change of a node from standalone (thick mode) to Multus (delegated mode) or back: existing pods can be detached.

A container is attached in only one of the modes, even if the node's mode changes meanwhile.
"""

from typing import Any

from tests.e2e.interfaces import interfaces
from tests.e2e.multus import leftovers
from tests.e2e.multus.attachment_matrix import MatrixRow
from tests.e2e.multus.attachments import as_interface, assert_attached
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet
from tests.e2e.multus.node import Node
from tests.e2e.multus.node_kinds import RunningMultus
from tests.e2e.multus.runtime import call
from tests.e2e.node import NETWORK
from tests.e2e.polling import wait_until

STANDALONE: dict[str, Any] = {"cniVersion": "1.0.0", "name": NETWORK, "type": NETWORK}
ROW = MatrixRow("", "blue,blue,other/blue", {"net1": "demo/blue", "net2": "demo/blue", "net3": "other/blue"})


def test_multus_detaches_pods_of_a_standalone_node(kubelet: Kubelet, cluster: Cluster, node: Node) -> None:
    sandbox = kubelet.sandbox(ROW.networks, **STANDALONE)
    with node.plugin_settings(mode="thick"):
        sandbox.add().succeeded()
    allocated = cluster.allocated(sandbox.pod)
    assert interfaces(sandbox.ip) == {f"eth{index}": as_interface(each) for index, each in enumerate(allocated)}
    sandbox.settings = {}
    sandbox.delete().succeeded()
    assert interfaces(sandbox.ip) == {}
    assert leftovers.of_sandbox(sandbox) == []


def test_a_standalone_node_detaches_pods_of_multus(kubelet: Kubelet, cluster: Cluster, multus: RunningMultus) -> None:
    """DEL comes only for eth0; calls for other pods clean up the rest once the sandbox is deleted.

    The daemon of Multus must have ended by then: it holds descriptors of sandboxes until its garbage collector closes
    them.
    """
    sandbox, old = (kubelet.sandbox(ROW.networks) for _ in range(2))
    for each in (sandbox, old):
        each.add().succeeded()
    new = kubelet.sandbox("blue", **STANDALONE)
    sandbox.settings = STANDALONE
    multus.kill()
    with multus.node.plugin_settings(mode="thick"):
        sandbox.delete().succeeded()
        sandbox.remove()
        wait_until(lambda: leftovers.links_of(sandbox) == [], what="without links")
        new.add().succeeded()
    wait_until(lambda: leftovers.of_this_plugin(sandbox) == [], what="cleaned up")
    assert_attached(cluster, old, ROW)
    multus.start()
    sandbox.settings = {}  # so that Multus deletes its files, too


def test_a_container_in_thick_mode_gets_no_delegated_attachment(kubelet: Kubelet, node: Node) -> None:
    sandbox = kubelet.sandbox(ROW.networks, **STANDALONE)
    with node.plugin_settings(mode="thick"):
        sandbox.add().succeeded()
    links = interfaces(sandbox.ip)
    config = {"cniVersion": "1.0.0", "name": "blue", "type": NETWORK}
    message = call(node, sandbox.variables("ADD", "net1"), config).failed()
    assert "eth0 is already attached in thick mode" in message
    assert "in delegated mode" in message
    assert interfaces(sandbox.ip) == links


def test_a_container_with_delegated_attachments_is_not_attached_in_thick_mode(kubelet: Kubelet, node: Node) -> None:
    sandbox = kubelet.sandbox(ROW.networks)
    sandbox.add().succeeded()
    links = interfaces(sandbox.ip)
    with node.plugin_settings(mode="thick"):
        message = call(node, sandbox.variables("ADD", "eth9"), STANDALONE).failed()
    assert "is already attached in delegated mode" in message
    assert "in thick mode" in message
    assert interfaces(sandbox.ip) == links
