"""A node reboots during an upgrade from the previous release: its pods come back, each with its addresses."""

from collections.abc import Iterator

import pytest

from tests.e2e.kubelet.cluster import TIMEOUT, Cluster, Pod
from tests.e2e.kubelet.reboot import reboot
from tests.e2e.kubelet.release import CHECKOUT, Release
from tests.e2e.kubelet.starting_pods import every_pod_starts, restarts
from tests.e2e.polling import wait_until

_DEADLINE = 120.0  # seconds: kubelet may take a minute until it starts pods


@pytest.fixture(scope="module", autouse=True)
def _pods_leave_nothing() -> None:
    """Replaces the check of the folder, since pods of the manifests come and go."""


@pytest.fixture
def pods(cluster: Cluster, previous: Release) -> Iterator[list[Pod]]:
    """A pod on each node, of the previous release."""
    cluster.deploy(previous)
    assert cluster.images() == {previous.image}
    with cluster.steady_pods() as pods:
        yield pods


def test_pods_of_a_node_that_reboots_during_an_upgrade_come_back(cluster: Cluster, pods: list[Pod]) -> None:
    node = cluster.nodes[0]
    with every_pod_starts(cluster, at_least=1):
        cluster.kubectl("apply", "-k", str(CHECKOUT.overlay))
        wait_until(lambda: not node.agent_is_ready(), what="being replaced")
        reboot(node)
        cluster.await_rollout()
    assert cluster.images() == {CHECKOUT.image}
    wait_until(
        lambda: restarts(cluster, "steady") == {0, 1},
        what="restarted on the node alone",
        otherwise=lambda: cluster("get", "pods,events", "-o", "wide"),
        deadline=_DEADLINE,
    )
    cluster("rollout", "status", "daemonset/steady", TIMEOUT)
    assert cluster.pods("steady") == pods
    first, second = pods
    cluster.await_reachable(first, second)
    cluster.await_reachable(second, first)
