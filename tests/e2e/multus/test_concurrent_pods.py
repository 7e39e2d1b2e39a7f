"""Many pods attached and detached at the same time, as when a node starts."""

from tests.e2e.multus import leftovers
from tests.e2e.multus.attachment_matrix import ROWS
from tests.e2e.multus.attachments import assert_attached
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet
from tests.e2e.multus.runtime import Sandbox, run_concurrently

PODS = 2 * len(ROWS)


def test_each_pod_gets_its_own_interfaces(kubelet: Kubelet, cluster: Cluster) -> None:
    rows = [ROWS[number % len(ROWS)] for number in range(PODS)]
    sandboxes = [kubelet.sandbox(row.networks, **row.settings) for row in rows]
    run_concurrently(Sandbox.add, sandboxes)
    for sandbox, row in zip(sandboxes, rows, strict=True):
        assert_attached(cluster, sandbox, row)
    run_concurrently(Sandbox.delete, sandboxes)
    assert [left for sandbox in sandboxes for left in leftovers.of_sandbox(sandbox)] == []
