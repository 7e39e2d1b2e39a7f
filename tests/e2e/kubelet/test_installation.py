"""The manifests on nodes with a real kubelet, and what of pods remains on the nodes."""

import pytest

from cni_contrail.datapath.node_reconciler import STALE_SECONDS
from tests.e2e.kubelet.cluster import NODES, TIMEOUT, WORKLOADS, Cluster
from tests.e2e.kubelet.leftovers import networks_of_node
from tests.e2e.polling import DEADLINE, wait_until

NAMESPACE = "short-lived"


def test_no_container_of_the_manifests_fails(cluster: Cluster) -> None:
    pods = cluster.get("pods", "-n", "contrail")["items"]
    containers = [status for pod in pods for status in pod["status"]["containerStatuses"]]
    assert len(pods) == 2 * NODES
    restarts = {(each["name"], each["restartCount"]) for each in containers}
    assert restarts == {("agent", 0), ("cnid", 0), ("installer", 0), ("manager", 0)}


def test_nodes_have_containerd_before_and_since_version_2(cluster: Cluster) -> None:
    nodes = cluster.get("nodes")["items"]
    runtimes = [node["status"]["nodeInfo"]["containerRuntimeVersion"] for node in nodes]
    assert [version.removeprefix("containerd://").lstrip("v").partition(".")[0] for version in runtimes] == ["2", "1"]


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    """A namespace with networks and pods on both nodes."""
    cluster.kubectl("create", "namespace", NAMESPACE)
    for workload in ("networks", "web"):
        cluster.kubectl("-n", NAMESPACE, "apply", "-f", str(WORKLOADS / f"{workload}.yaml"))
    cluster.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/web", TIMEOUT)
    return NAMESPACE


def test_deleting_a_namespace_removes_its_networks_from_the_nodes(cluster: Cluster, namespace: str) -> None:
    assert all(networks_of_node(node) for node in cluster.nodes)
    cluster.kubectl("delete", "namespace", namespace, TIMEOUT)
    wait_until(lambda: cluster.virtual_machines() == [], what="without virtual machines")
    wait_until(
        lambda: not any(networks_of_node(node) for node in cluster.nodes),
        what="without networks",
        deadline=STALE_SECONDS + DEADLINE,
    )
