"""kubelet or containerd of a node is killed while its pods are created, and while they are deleted."""

import pytest

from tests.e2e.host_process import HostProcess
from tests.e2e.kubelet.cluster import Cluster
from tests.e2e.kubelet.conftest import Apply
from tests.e2e.polling import wait_until

_PODS = 30
_READY_AT_KILLS = (3, 15)
_DEADLINE = 120.0


@pytest.mark.parametrize("killed", ["kubelet", "runtime"])
def test_thirty_pods_start_and_end(cluster: Cluster, apply: Apply, killed: str) -> None:
    process = getattr(cluster.nodes[0], killed)
    apply("crowd")
    for expected in _READY_AT_KILLS:
        await_ready(cluster, expected)
        restart(process)
    await_ready(cluster, _PODS)
    pods = cluster.addressed_pods("crowd")
    addresses = {address for pod in pods for each in pod.addresses.values() for address in each}
    assert len(pods) == _PODS
    assert len(addresses) == 4 * _PODS  # of the pod network, of both families of `blue`, and of `green`
    cluster("delete", "deployment", "crowd")
    restart(process)
    wait_until(lambda: cluster.pods("crowd") == [], what="deleted", deadline=_DEADLINE)


def await_ready(cluster: Cluster, expected: int) -> None:
    """Waits until so many pods are ready."""
    wait_until(
        lambda: ready(cluster) >= expected,
        what=f"ready: {expected} pods",
        otherwise=lambda: cluster("get", "pods,events"),
        deadline=_DEADLINE,
    )


def ready(cluster: Cluster) -> int:
    """How many pods are ready."""
    count: int = cluster.get("deployment", "crowd")["status"].get("readyReplicas", 0)
    return count


def restart(process: HostProcess) -> None:
    """Kills it, and starts it."""
    process.kill()
    process.start(repeatedly=True)  # kubelet ends if containerd still reads what it has stored
