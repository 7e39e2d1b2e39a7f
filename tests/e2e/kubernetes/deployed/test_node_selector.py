"""`source.node-selector`: pods of nodes that it does not select get no interfaces and no event."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster, Tenant
from tests.support.cluster_processes import ManagerProcess, running


@pytest.fixture
def selecting(cluster: Cluster, tmp_path: Path) -> Iterator[ManagerProcess]:
    """A manager for the nodes that have the label `agent`."""
    kubeconfig = cluster.kubeconfig("contrail-manager")
    source = {
        "kind": "kubernetes",
        "kubeconfig": str(kubeconfig),
        "lease-namespace": NAMESPACE,
        "node-selector": "agent in (contrail, ours)",
    }
    manager = ManagerProcess(tmp_path, kubeconfig, lease_namespace=NAMESPACE, source=source)
    with running(manager):
        manager.wait_until_it_leads()
        yield manager
        assert manager.stop() == 0


def label(cluster: Cluster, node: str, **labels: str) -> None:
    """Creates the node with these labels."""
    cluster.server.ask("POST", "/api/v1/nodes", {"metadata": {"name": node, "labels": labels}})


def test_pods_get_interfaces_once_their_node_is_selected(
    cluster: Cluster, selecting: ManagerProcess, tenant: Tenant
) -> None:
    label(cluster, "selected", agent="contrail")
    tenant.add_pod("excluded", node="other")
    tenant.add_pod("included", node="selected")
    tenant.assigned("included")
    selecting.wait_until(
        lambda: (
            [pod["state"] for pod in selecting.items("pods", f"?namespace={tenant.namespace}")] == ["Excluded", "Ready"]
        ),
        what="excluding",
    )
    assert tenant.virtual_machine("excluded") is None
    assert tenant.events("excluded") == {}
    label(cluster, "other", agent="ours")
    tenant.assigned("excluded")
