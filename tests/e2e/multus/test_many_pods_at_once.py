"""A node that starts: its pods come all at once, and go all at once."""

from tests.e2e.multus import leftovers
from tests.e2e.multus.attachments import assert_attached
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet
from tests.e2e.multus.rows import ROWS
from tests.e2e.multus.runtime import Sandbox, at_once

PODS = 2 * len(ROWS)


def test_each_gets_its_own(kubelet: Kubelet, cluster: Cluster) -> None:
    rows = [ROWS[number % len(ROWS)] for number in range(PODS)]
    sandboxes = [kubelet.sandbox(row.networks, **row.settings) for row in rows]
    at_once(Sandbox.add, sandboxes)
    for sandbox, row in zip(sandboxes, rows, strict=True):
        assert_attached(cluster, sandbox, row)
    at_once(Sandbox.delete, sandboxes)
    assert [left for sandbox in sandboxes for left in leftovers.of_sandbox(sandbox)] == []
