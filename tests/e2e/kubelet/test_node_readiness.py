"""Nodes stay ready while agents and daemons are replaced: the runtime's question for readiness, STATUS, never fails."""

import json
import threading
from collections.abc import Iterator

import pytest

from tests.e2e.kubelet.cluster import Cluster
from tests.e2e.kubelet.node import Node

_PLUGINS = "/opt/cni/bin"
_CONFIGURATION = {"cniVersion": "1.1.0", "name": "contrail-k8s-cni", "type": "contrail-k8s-cni"}
_STATUS = f"CNI_COMMAND=STATUS CNI_PATH={_PLUGINS} {_PLUGINS}/contrail-k8s-cni"
_INTERVAL = 0.2  # seconds between two calls
_REPLACEMENTS = 2


class StatusCalls:
    """Calls STATUS of the installed plugin on a node again and again; `failures` are its errors."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"status-{node.name}")
        self.calls = 0
        self.failures: list[str] = []

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Waits for the last call."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        command = f"echo '{json.dumps(_CONFIGURATION)}' | {_STATUS}"
        while not self._ending.wait(_INTERVAL):
            ended = self._node.host.call("sh", "-c", command)
            self.calls += 1
            if ended.returncode != 0:
                self.failures.append(f"{ended.stdout}{ended.stderr}")


@pytest.fixture(scope="module", autouse=True)
def _pods_leave_nothing() -> None:
    """Replaces the check of the folder, since pods of the manifests come and go."""


@pytest.fixture
def status_calls(cluster: Cluster) -> Iterator[list[StatusCalls]]:
    """On each node, from here to the end."""
    found = [StatusCalls(node) for node in cluster.nodes]
    for each in found:
        each.start()
    yield found
    for each in found:
        each.stop()


def test_nodes_stay_ready_while_agents_and_daemons_are_replaced(
    cluster: Cluster, status_calls: list[StatusCalls]
) -> None:
    before = readiness(cluster)
    assert {status for _, status, _ in before} == {"True"}
    for _ in range(_REPLACEMENTS):
        cluster.kubectl("-n", "contrail", "rollout", "restart", "daemonset/contrail-node")
        cluster.await_rollout()
    for each in status_calls:
        each.stop()
    assert [each.failures for each in status_calls] == [[], []]
    assert all(each.calls > 5 * _REPLACEMENTS for each in status_calls)
    assert readiness(cluster) == before


def readiness(cluster: Cluster) -> set[tuple[str, str, str]]:
    """Names of nodes, whether they are ready, and since when."""
    nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    return {
        (node["metadata"]["name"], condition["status"], condition["lastTransitionTime"])
        for node in nodes
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready"
    }
