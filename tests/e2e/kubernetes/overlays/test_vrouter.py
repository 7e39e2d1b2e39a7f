"""The rights in `deploy/overlays/vrouter` suffice for a manager whose store is a Contrail API server."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster, Tenant
from tests.support.cluster_processes import AgentProcess, ManagerProcess, running
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller
from tests.support.kubectl.client import OVERLAYS, built
from tests.support.real_apiserver.server import ApiServer

NODE = "contrail-compute"
ADDRESS = "192.0.2.77"


@pytest.fixture
def cluster(api_server: ApiServer) -> Cluster:
    return Cluster(api_server, built(OVERLAYS / "vrouter"))


@pytest.fixture
def tenant(cluster: Cluster) -> Tenant:
    return Tenant(cluster)


def add_node(cluster: Cluster) -> None:
    cluster.server.ask("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
    addresses = [{"type": "InternalIP", "address": ADDRESS}]
    cluster.server.ask("PATCH", f"/api/v1/nodes/{NODE}/status", {"status": {"addresses": addresses}})


async def test_a_pod_reaches_the_virtual_router_and_the_agent_of_its_node(
    cluster: Cluster, tenant: Tenant, contrail: ContrailApi, caller: Caller, tmp_path: Path
) -> None:
    router = await caller.create(
        "virtual-router",
        fq_name=["default-global-system-config", "vrouter-77"],
        parent_type="global-system-config",
        virtual_router_ip_address=ADDRESS,
    )
    await asyncio.to_thread(add_node, cluster)
    kubeconfig, store = cluster.kubeconfig("contrail-manager"), {"kind": "vnc", "url": contrail.url}
    manager = ManagerProcess(tmp_path / "manager", kubeconfig, lease_namespace=NAMESPACE, store=store)
    agent = AgentProcess(tmp_path / "agent", tmp_path / "no-kubeconfig", node=NODE, store=store)
    uid = await asyncio.to_thread(serve_pod, manager, agent, tenant)
    assert [link["uuid"] for link in (await caller.read(router))["virtual_machine_refs"]] == [uid]
    listed = await caller.get("/virtual-machine-interfaces", back_ref_id=uid)
    assert len(listed["virtual-machine-interfaces"]) == 2
    assert not re.search(r"cannot \w+ resource", manager.log.read_text()), "a permission is missing"


def serve_pod(manager: ManagerProcess, agent: AgentProcess, tenant: Tenant) -> str:
    """Starts both, creates a pod, waits until it is served, and returns its uid."""
    with running(manager):
        manager.wait_until_it_leads()
        tenant.add_nad("blue", cidr="10.77.0.0/24")
        uid = tenant.add_pod("web", networks="blue", node=NODE)
        with running(agent):
            served = agent.interfaces(tenant.namespace, "web", wait=20)
            assert [item["vn-name"].rpartition(":")[2] for item in served] == [
                "k8s-default-pod-network",
                "k8s-blue-pod-network",
            ]
            tenant.wait_for_event("web", "InterfacesAssigned")
            assert agent.stop() == 0
        assert manager.stop() == 0
    return uid
