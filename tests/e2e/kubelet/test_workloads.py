"""Workloads of users on two nodes: each pod has three interfaces, and reaches others in every network."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.interfaces import interfaces
from tests.e2e.kubelet.cluster import TIMEOUT, WORKLOADS, Cluster, Pod
from tests.e2e.kubelet.conftest import Apply
from tests.e2e.polling import wait_until

NAMES = ["eth0", "eth1", "eth2"]


def test_pods_of_a_deployment_reach_each_other_across_nodes_in_every_network(cluster: Cluster, apply: Apply) -> None:
    apply("web")
    cluster("rollout", "status", "deployment/web", TIMEOUT)
    first, second = cluster.addressed_pods("web")
    assert {first.node, second.node} == {"node-1", "node-2"}
    for source, target in ((first, second), (second, first)):
        assert list(source.addresses) == ["eth0", "eth1", "front"]
        assert actual_addresses(cluster, source) == source.addresses
        cluster.await_reachable(source, target)


def test_a_recreated_pod_of_a_stateful_set_has_interfaces_of_its_own(cluster: Cluster, apply: Apply) -> None:
    apply("database")
    cluster("rollout", "status", "statefulset/database", TIMEOUT)
    before, other = cluster.pods("database")
    cluster("delete", "pod", before.name, TIMEOUT)
    wait_until(lambda: before.name in [pod.name for pod in cluster.pods("database")], what="recreated")
    cluster("wait", "--for=condition=Ready", f"pod/{before.name}", TIMEOUT)
    after, _ = cluster.addressed_pods("database")
    assert after.name == before.name
    assert after.uid != before.uid
    assert list(after.addresses) == NAMES
    assert actual_addresses(cluster, after) == after.addresses
    cluster.await_reachable(other, after)


def test_a_pod_of_a_job_has_its_interfaces_until_it_ends(cluster: Cluster, apply: Apply) -> None:
    apply("backup")
    cluster("wait", "--for=condition=complete", "job/backup", TIMEOUT)
    (pod,) = cluster.pods("backup")
    printed = interfaces(lambda *_: cluster("logs", pod.name))
    assert list(printed) == NAMES
    wait_until(lambda: pod.uid not in cluster.virtual_machines(), what="released")


def test_a_static_pod_has_interfaces_until_its_file_is_gone(cluster: Cluster, static_pod: Path, apply: Apply) -> None:
    apply("database")
    wait_until(lambda: cluster.pods("static") != [], what="mirrored")
    cluster("wait", "--for=condition=Ready", "pod/static-node-1", TIMEOUT)
    (pod,) = cluster.addressed_pods("static")
    assert list(pod.addresses) == NAMES
    assert actual_addresses(cluster, pod) == pod.addresses
    cluster("rollout", "status", "statefulset/database", TIMEOUT)
    for other in cluster.pods("database"):
        cluster.await_reachable(other, pod)
    static_pod.unlink()
    wait_until(lambda: cluster.pods("static") == [], what="without the static pod")


@pytest.fixture
def static_pod(cluster: Cluster) -> Iterator[Path]:
    """The file of a static pod on the first node."""
    file = cluster.nodes[0].static_pod("static")
    file.write_text((WORKLOADS / "static.yaml").read_text())
    yield file
    file.unlink(missing_ok=True)


def actual_addresses(cluster: Cluster, pod: Pod) -> dict[str, list[str]]:
    """The addresses that a pod has, by the names of its interfaces; IPv4 before IPv6."""
    return {
        name: sorted((each.partition("/")[0] for each in interface.addresses), key=lambda each: ":" in each)
        for name, interface in cluster.interfaces(pod.name).items()
    }
