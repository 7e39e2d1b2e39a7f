"""DEL while the pod, the sandbox, the agent or Multus's daemon is missing: in the end nothing is left."""

from tests.e2e.interfaces import interfaces
from tests.e2e.multus import leftovers
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet
from tests.e2e.multus.node import Node
from tests.e2e.multus.node_kinds import THICK, RunningMultus, only_on
from tests.e2e.polling import wait_until

NETWORKS = "blue,bridge,blue,other/blue"


def test_del_succeeds_after_the_pod_is_deleted(kubelet: Kubelet, cluster: Cluster) -> None:
    sandbox = kubelet.sandbox(NETWORKS)
    sandbox.add().succeeded()
    cluster.remove_pod(sandbox.pod)
    wait_until(lambda: cluster.virtual_machine(sandbox.pod) is None, what="without its virtual machine")
    sandbox.delete().succeeded()
    assert interfaces(sandbox.ip) == {}
    assert leftovers.of_sandbox(sandbox) == []


def test_del_succeeds_after_the_sandbox_is_deleted(kubelet: Kubelet) -> None:
    sandbox = kubelet.sandbox(NETWORKS)
    sandbox.add().succeeded()
    sandbox.remove()
    sandbox.delete().succeeded()
    assert leftovers.of_sandbox(sandbox) == []


def test_ports_are_unplugged_once_the_agent_is_back(kubelet: Kubelet, node: Node) -> None:
    sandbox = kubelet.sandbox(NETWORKS)
    sandbox.add().succeeded()
    node.agent.kill()
    sandbox.delete().succeeded()
    assert interfaces(sandbox.ip) == {}
    assert len(sandbox.ports) == 4
    node.start_agent()
    kubelet.sandbox("blue").add().succeeded()
    wait_until(lambda: leftovers.of_sandbox(sandbox) == [], what="cleaned up")


@only_on(THICK)
def test_an_attachment_that_multus_failed_to_detach_is_removed_by_later_calls(
    kubelet: Kubelet, multus: RunningMultus
) -> None:
    """Without its daemon, Multus's shim answers DEL with success and does nothing, so the runtime does not retry."""
    sandbox = kubelet.sandbox("blue,blue,other/blue")
    sandbox.add().succeeded()
    multus.kill()
    sandbox.delete().succeeded()
    sandbox.remove()
    multus.start()
    assert leftovers.of_this_plugin(sandbox) != []
    kubelet.sandbox("blue").add().succeeded()
    wait_until(lambda: leftovers.of_this_plugin(sandbox) == [], what="cleaned up")
