"""Static pods: their uid is a hash for the runtime, and that of the mirror pod for the API server."""

import uuid

from tests.e2e.multus import leftovers
from tests.e2e.multus.attachment_matrix import MatrixRow
from tests.e2e.multus.attachments import assert_attached
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet


def test_static_pods_are_attached_like_other_pods(kubelet: Kubelet, cluster: Cluster) -> None:
    checksum = uuid.uuid4().hex
    annotations = {"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": checksum}
    sandbox = kubelet.sandbox("blue,bridge,blue", annotations=annotations)
    sandbox.uid = checksum
    sandbox.add().succeeded()
    attachments = {"net1": "demo/blue", "net2": "demo/bridge", "net3": "demo/blue"}
    assert_attached(cluster, sandbox, MatrixRow("", "", attachments))
    sandbox.delete().succeeded()
    assert leftovers.of_sandbox(sandbox) == []
