"""kubelet or containerd of a node is killed while its pods are created, and while they are deleted."""

from collections.abc import Iterator

import pytest

from tests.e2e.host_process import HostProcess
from tests.e2e.kubelet.cluster import Cluster
from tests.e2e.kubelet.crowd import Crowd

_SIZE = 30
_READY_AT_KILLS = (3, 15)
_LEFT_AT_KILLS = (25, 10)


@pytest.fixture
def crowd(cluster: Cluster) -> Iterator[Crowd]:
    crowd = Crowd(cluster, _SIZE)
    yield crowd
    crowd.delete()
    crowd.await_left(0)


@pytest.mark.parametrize("killed", ["kubelet", "runtime"])
def test_thirty_pods_start_and_end(cluster: Cluster, crowd: Crowd, killed: str) -> None:
    process = getattr(cluster.nodes[0], killed)
    crowd.create()
    for expected in _READY_AT_KILLS:
        crowd.await_ready(expected)
        restart(process)
    crowd.await_all()
    crowd.delete()
    for expected in _LEFT_AT_KILLS:
        crowd.await_left(expected)
        restart(process)
    crowd.await_left(0)


def restart(process: HostProcess) -> None:
    """Kills it, and starts it."""
    process.kill()
    process.start(repeatedly=True)  # kubelet ends if containerd still reads what it has stored
