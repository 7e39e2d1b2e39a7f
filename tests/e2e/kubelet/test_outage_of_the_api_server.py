"""The API server is away for a while: pods that are about to start do so when it is back, and those that run go on."""

import time

import pytest

from tests.e2e.kubelet.cluster import Cluster
from tests.e2e.kubelet.crowd import crowd_starts
from tests.e2e.kubelet.traffic import no_loss

_SIZE = 20
_READY = 3
_SECONDS = 10.0


@pytest.fixture(scope="module", autouse=True)
def _pods_leave_nothing() -> None:
    """Replaces the check of the folder: a manager that loses its lease ends, and is restarted with files of its own."""


def test_pods_that_start_become_ready_and_those_that_run_lose_no_packet(cluster: Cluster) -> None:
    with (
        cluster.steady_pods() as pods,
        no_loss(cluster, pods),
        crowd_starts(cluster, _SIZE, cluster.nodes[0], ready=_READY),
        cluster.without_api_server(),
    ):
        time.sleep(_SECONDS)  # noqa: TID251 - nothing but the time makes an outage long enough
