"""A cluster needs no preparation: the first leader creates the CRDs, and agents started earlier wait for them."""

from pathlib import Path

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster, Tenant
from tests.support.cluster_processes import AgentProcess, ManagerProcess, running

NAD_DEFINITION = "network-attachment-definitions.k8s.cni.cncf.io"
KINDS = ("virtualmachines", "virtualnetworks", "addressblocks", "networkslices", "contrailnodes")
OURS = {f"{kind}.opencontrail.org" for kind in KINDS}


def test_the_first_manager_creates_the_crds_and_waiting_agents_proceed(cluster: Cluster, tmp_path: Path) -> None:
    cluster.delete_definitions()
    agent = AgentProcess(tmp_path / "agent", cluster.agent_kubeconfig("node-1"), node="node-1")
    manager = ManagerProcess(tmp_path / "manager", cluster.kubeconfig("contrail-manager"), lease_namespace=NAMESPACE)
    agent.launch()
    try:
        agent.wait_until(lambda: "virtualmachines: 404" in str(agent.ask("/readyz")), what="reporting the missing CRD")
        with running(manager):
            manager.wait_until_it_leads()
            assert cluster.definitions() == {NAD_DEFINITION, *OURS}
            agent.wait_until_ready()
            tenant = Tenant(cluster)
            tenant.add_pod("web", node="node-1")
            assert len(agent.interfaces(tenant.namespace, "web", wait=10)) == 1
            assert manager.stop() == 0
    finally:
        agent.kill()
