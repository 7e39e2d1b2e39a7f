"""With `namespace-isolation`, pods use only networks of their own namespace and of global namespaces."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster, Tenant
from tests.support.cluster_processes import ManagerProcess, running


@pytest.fixture
def shared(cluster: Cluster) -> Tenant:
    """A global namespace."""
    return Tenant(cluster)


@pytest.fixture
def _isolating(cluster: Cluster, shared: Tenant, tmp_path: Path) -> Iterator[None]:
    isolation = {"enabled": True, "global-namespaces": [shared.namespace]}
    kubeconfig = cluster.kubeconfig("contrail-manager")
    manager = ManagerProcess(tmp_path, kubeconfig, lease_namespace=NAMESPACE, namespace_isolation=isolation)
    with running(manager):
        manager.wait_until_it_leads()
        yield
        assert manager.stop() == 0


@pytest.mark.usefixtures("_isolating")
def test_networks_of_other_namespaces_are_forbidden_unless_global(
    cluster: Cluster, tenant: Tenant, shared: Tenant
) -> None:
    other = Tenant(cluster)
    for number, owner in enumerate((tenant, shared, other)):
        owner.add_nad("net", cidr=f"10.{number}.0.0/24")
    tenant.add_pod("good", networks=f"net,{shared.namespace}/net", node="node-1")
    tenant.add_pod("bad", networks=f"{other.namespace}/net", node="node-1")
    assert len(tenant.assigned("good")["interfaces"]) == 3
    assert f"{other.namespace}/net" in tenant.wait_for_event("bad", "NetworkForbidden")
    assert tenant.virtual_machine("bad") is None
