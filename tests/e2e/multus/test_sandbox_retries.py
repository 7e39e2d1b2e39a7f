"""kubelet retries a pod with a new sandbox; the old one may end before or after the new one starts."""

from tests.e2e.interfaces import interfaces
from tests.e2e.multus import leftovers
from tests.e2e.multus.attachment_matrix import MatrixRow
from tests.e2e.multus.attachments import assert_attached
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet

ROW = MatrixRow("", "blue,bridge,blue", {"net1": "demo/blue", "net2": "demo/bridge", "net3": "demo/blue"})


def test_a_new_sandbox_gets_the_same_interfaces_after_the_old_one_ended(kubelet: Kubelet, cluster: Cluster) -> None:
    sandbox = kubelet.sandbox(ROW.networks)
    sandbox.add().succeeded()
    sandbox.end()
    again = kubelet.another(sandbox)
    again.add().succeeded()
    assert_attached(cluster, again, ROW)


def test_the_old_sandbox_may_end_after_the_new_one_started(kubelet: Kubelet, cluster: Cluster) -> None:
    sandbox = kubelet.sandbox(ROW.networks)
    sandbox.add().succeeded()
    again = kubelet.another(sandbox)
    again.add().succeeded()
    sandbox.end()
    assert leftovers.of_sandbox(sandbox) == []
    assert_attached(cluster, again, ROW)
    assert len(again.ports) == 3


def test_a_failed_add_succeeds_once_the_cause_is_repaired(kubelet: Kubelet, cluster: Cluster) -> None:
    sandbox = kubelet.sandbox("blue,blue,broken")
    for _ in range(2):
        assert "broken on purpose" in sandbox.add().failed()
        sandbox.end()
        sandbox = kubelet.another(sandbox)
    with sandbox.node.repaired():
        sandbox.add().succeeded()
        assert list(interfaces(sandbox.ip)) == ["eth0", "net1", "net2"]
