"""The chart in place of the manifests, installed and removed by the documented commands; it comes after the removal."""

from collections.abc import Iterator

import pytest

from tests.e2e.kubelet.checkout import documented
from tests.e2e.kubelet.cluster import TIMEOUT, Cluster, Pod
from tests.e2e.kubelet.test_uninstallation import INSTALLED, installed_files, names, removal_from_nodes


@pytest.fixture(scope="module", autouse=True)
def _pods_leave_nothing() -> None:
    """Replaces the check of the folder, since the pods of the chart stay."""


@pytest.fixture(scope="module", autouse=True)
def _installed_by_helm(cluster: Cluster) -> None:
    cluster.kubectl("delete", "-k", "deploy/overlays/standalone", "--ignore-not-found", TIMEOUT)
    cluster.checkout.run("install", "scripts/helm-chart")
    cluster.kubectl("uncordon", *(node.name for node in cluster.nodes))
    cluster.await_rollout()
    cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", TIMEOUT)


@pytest.fixture
def pods(cluster: Cluster) -> Iterator[list[Pod]]:
    """Two pods on different nodes."""
    cluster.apply("web")
    cluster.await_deployment("web")
    yield cluster.addressed_pods("web")
    cluster.delete("web")


def test_pods_reach_each_other_in_every_network(cluster: Cluster, pods: list[Pod]) -> None:
    first, second = pods
    assert list(first.addresses) == list(second.addresses) == ["eth0", "eth1", "front"]
    cluster.await_reachable(first, second)
    cluster.await_reachable(second, first)


def test_removal_leaves_only_the_data(cluster: Cluster) -> None:
    before = names(cluster, "crd")
    cluster.checkout.run_script(removal_from_nodes(cluster))
    cluster.checkout.run("install", "helm uninstall")
    cluster.checkout.run_script(documented("operations", "kubectl delete -k cluster").rstrip().rsplit("\n", 1)[1])
    assert [installed_files(node) for node in cluster.nodes] == [{folder: [] for folder in INSTALLED}] * 2
    assert names(cluster, "crd") == before
    for kind in ("clusterroles", "clusterrolebindings", "flowschemas", "validatingadmissionpolicies"):
        assert [name for name in names(cluster, kind) if "contrail" in name] == []
    assert {"contrail", "contrail-uninstall"}.isdisjoint(names(cluster, "namespaces"))
    cluster.checkout.run("operations", "kubectl delete -f deploy/crds")
    assert [name for name in names(cluster, "namespaces") if "contrail" in name] == []
