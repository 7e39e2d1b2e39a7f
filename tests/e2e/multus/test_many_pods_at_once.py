"""A node that starts: its pods come all at once, and go all at once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.e2e.multus import leftovers
from tests.e2e.multus.attachments import assert_attached
from tests.e2e.multus.cluster import Cluster
from tests.e2e.multus.kubelet import Kubelet
from tests.e2e.multus.rows import ROWS
from tests.e2e.multus.runtime import Outcome, Sandbox

PODS = 2 * len(ROWS)


def test_each_gets_its_own(kubelet: Kubelet, cluster: Cluster) -> None:
    rows = [ROWS[number % len(ROWS)] for number in range(PODS)]
    sandboxes = [kubelet.sandbox(row.networks, **row.settings) for row in rows]
    at_once(Sandbox.add, sandboxes)
    for sandbox, row in zip(sandboxes, rows, strict=True):
        assert_attached(cluster, sandbox, row)
    at_once(Sandbox.delete, sandboxes)
    assert [left for sandbox in sandboxes for left in leftovers.of_sandbox(sandbox)] == []


def at_once(command: Callable[[Sandbox], Outcome], sandboxes: list[Sandbox]) -> None:
    """Has the command succeed for all, side by side."""
    with ThreadPoolExecutor(len(sandboxes)) as calls:
        for outcome in calls.map(command, sandboxes):
            outcome.succeeded()
