"""Pods that are created before their networks wait, say what for, and start as soon as the networks exist."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.e2e.kubelet.cluster import NODES, Cluster, Pod
from tests.e2e.kubelet.starting_pods import restarts
from tests.e2e.kubelet.test_workloads import NAMES, actual_addresses
from tests.e2e.polling import wait_until

_MISSING = {"early": "red", "half-early": "violet"}
"""The network that each workload waits for; the first one, if several are missing."""

_REASON = "NetworkNotFound"
_FAILED = "FailedCreatePodSandBox"
_BACK_OFF = 10.0
"""Seconds; kubelet waits longer until it makes a sandbox again that has failed, unless the pod changes."""


@pytest.fixture(scope="module")
def pods(cluster: Cluster) -> Iterator[list[Pod]]:
    """The pods of both workloads, each of which kubelet has failed to start once."""
    cluster.apply("early")
    wait_until(lambda: len(all_pods(cluster)) == len(_MISSING) * NODES, what="created")
    pods = all_pods(cluster)
    for pod in pods:
        wait_until(partial(was_tried, cluster, pod), what=f"tried by kubelet: {pod.name}")
    yield pods
    for workload in ("early", "late-networks"):
        cluster.delete(workload)


def test_events_name_the_missing_network(cluster: Cluster, pods: list[Pod]) -> None:
    for pod in pods:
        missing = f"demo/{_MISSING[workload(pod)]}"
        for reason in (_REASON, _FAILED):
            found = messages(cluster, pod, reason)
            assert all(missing in message for message in found), found
        assert _REASON in messages(cluster, pod, _FAILED)[0]
        assert cluster.get("pod", pod.name)["status"]["phase"] == "Pending"


def test_pods_start_when_their_networks_are_created(cluster: Cluster, pods: list[Pod]) -> None:
    cluster.apply("late-networks")
    wait_until(
        lambda: all(ready(cluster, app) == NODES for app in _MISSING),
        what="ready",
        otherwise=lambda: cluster("get", "pods,events"),
        deadline=_BACK_OFF,
    )
    for app in _MISSING:
        first, second = cluster.addressed_pods(app)
        assert {first.node, second.node} == {node.name for node in cluster.nodes}
        assert {first.uid, second.uid} <= {pod.uid for pod in pods}
        for source, target in ((first, second), (second, first)):
            assert list(source.addresses) == NAMES
            assert actual_addresses(cluster, source) == source.addresses
            cluster.await_reachable(source, target)
        assert restarts(cluster, app) == {0}


def all_pods(cluster: Cluster) -> list[Pod]:
    """The pods of both workloads."""
    return [pod for app in _MISSING for pod in cluster.pods(app)]


def workload(pod: Pod) -> str:
    """The DaemonSet that a pod is of."""
    return pod.name.rpartition("-")[0]


def was_tried(cluster: Cluster, pod: Pod) -> bool:
    """Whether kubelet has failed to start it."""
    return messages(cluster, pod, _FAILED) != []


def messages(cluster: Cluster, pod: Pod, reason: str) -> list[str]:
    """Those of a pod's events with a reason."""
    selected = f"--field-selector=reason={reason},involvedObject.uid={pod.uid}"
    return [event["message"] for event in cluster.get("events", selected)["items"]]


def ready(cluster: Cluster, app: str) -> int:
    """The number of ready pods of a DaemonSet."""
    count: int = cluster.get("daemonset", app)["status"]["numberReady"]
    return count
