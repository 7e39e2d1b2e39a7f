"""A node that goes from standalone to Multus or back: pods of before are detached by whoever is there then.

And whatever a node is told in between, one container is attached in one of both ways.
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
    """It is called for eth0 alone; calls for other pods find what else there was, once the sandbox is gone.

    The daemon of Multus must have ended by then: it keeps sandboxes that it has seen, until its collector of garbage
    gets to their descriptors.
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
        wait_until(lambda: leftovers.links_of(sandbox) == [], what="rid of links")
        new.add().succeeded()
    wait_until(lambda: leftovers.of_ours(sandbox) == [], what="rid of what was left")
    assert_attached(cluster, old, ROW)
    multus.start()
    sandbox.settings = {}  # so that Multus forgets it, too


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
