"""Network slices of a deployed manager, with its own rights: written for each node, put back, kept over a kill."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubernetes.deployed.cluster import GROUP, NAMESPACE, Cluster, Object, Tenant, wait_until
from tests.support.cluster_processes import ManagerProcess, running
from tests.support.documentation import code, page
from tests.support.kubectl.client import Kubectl

NODES = {"slices-1": "192.0.2.1", "slices-2": "192.0.2.2"}


def put_address(cluster: Cluster, node: str, address: str) -> None:
    """Sets the internal address of a node, as its kubelet does."""
    path = f"/api/v1/nodes/{node}/status"
    status = {"addresses": [{"type": "InternalIP", "address": address}]}
    found = cluster.server.ask("GET", f"/api/v1/nodes/{node}")
    cluster.server.ask("PUT", path, {**found, "status": status})


@pytest.fixture(scope="module")
def _nodes(cluster: Cluster) -> None:
    for node, address in NODES.items():
        cluster.server.ask("POST", "/api/v1/nodes", {"metadata": {"name": node}})
        put_address(cluster, node, address)


@pytest.fixture
def writing(cluster: Cluster, tmp_path: Path, _nodes: None) -> Iterator[ManagerProcess]:
    """A manager that writes slices."""
    kubeconfig = cluster.kubeconfig("contrail-manager")
    manager = ManagerProcess(tmp_path, kubeconfig, lease_namespace=NAMESPACE, network_slices=True)
    with running(manager):
        manager.wait_until_it_leads()
        yield manager


def slices(cluster: Cluster, tenant: Tenant) -> dict[str, Object]:
    """The slices of the tenant's network, by node."""
    found = cluster.items(f"{GROUP}/networkslices")
    return {item["spec"]["node"]: item for item in found if item["spec"]["network"][1] == f"k8s-{tenant.namespace}"}


def addresses(cluster: Cluster, tenant: Tenant) -> dict[str, list[str]]:
    """The addresses of endpoints in the tenant's network, by node."""
    return {
        node: sorted(address for each in item["spec"]["endpoints"] for address in each.split()[1:])
        for node, item in slices(cluster, tenant).items()
    }


def add_pods(tenant: Tenant, *nodes: str) -> dict[str, list[str]]:
    """Starts a pod on each node; returns the addresses in the tenant's network by node."""
    tenant.add_nad("blue", cidr="10.1.0.0/24")
    found = {}
    for node in nodes:
        tenant.add_pod(f"on-{node}", networks="blue", node=node)
        found[node] = [each["address"] for each in tenant.assigned(f"on-{node}")["interfaces"][1]["addresses"]]
    return found


def test_slices_follow_pods_and_nodes(cluster: Cluster, writing: ManagerProcess, tenant: Tenant) -> None:
    expected = add_pods(tenant, *NODES)
    wait_until(lambda: addresses(cluster, tenant) == expected, what="slices are written")
    rows = cluster.server.table(f"{GROUP}/networkslices")
    (row,) = [row for row in rows if row["Network"] == "k8s-blue-pod-network" and row["Node"] == "slices-1"]
    assert (row["Tunnel"], row["Endpoints"], row["Blocks"]) == ("192.0.2.1", 1, "")
    put_address(cluster, "slices-1", "192.0.2.9")
    wait_until(
        lambda: slices(cluster, tenant)["slices-1"]["spec"]["tunnel"] == ["192.0.2.9"], what="the address is followed"
    )
    put_address(cluster, "slices-1", "192.0.2.1")
    for node in NODES:
        tenant.remove_pod(f"on-{node}")
    wait_until(lambda: not slices(cluster, tenant), what="empty slices are deleted")


def test_the_pod_network_lists_the_blocks_of_each_node(
    cluster: Cluster, writing: ManagerProcess, tenant: Tenant
) -> None:
    tenant.add_pod("web", node="slices-1")
    tenant.assigned("web")

    def blocks() -> dict[str, str]:
        rows = cluster.server.table(f"{GROUP}/networkslices")
        return {row["Node"]: row["Blocks"] for row in rows if row["Network"] == "k8s-default-pod-network"}

    wait_until(lambda: blocks().get("slices-1", "").endswith("/26"), what="the block is listed")


def test_deleted_slices_are_put_back(cluster: Cluster, writing: ManagerProcess, tenant: Tenant) -> None:
    expected = add_pods(tenant, "slices-1")
    wait_until(lambda: addresses(cluster, tenant) == expected, what="slices are written")
    before = slices(cluster, tenant)["slices-1"]["metadata"]
    token = cluster.server.service_account_token(NAMESPACE, "contrail-manager")  # nobody else may delete them
    path = f"{GROUP}/namespaces/{before['namespace']}/networkslices/{before['name']}"
    cluster.server.ask("DELETE", path, token=token)
    wait_until(lambda: addresses(cluster, tenant) == expected, what="slices are put back")
    assert slices(cluster, tenant)["slices-1"]["metadata"]["uid"] != before["uid"]


def test_a_killed_managers_slices_are_kept_and_completed(
    cluster: Cluster, writing: ManagerProcess, tenant: Tenant
) -> None:
    expected = add_pods(tenant, *NODES)
    wait_until(lambda: addresses(cluster, tenant) == expected, what="slices are written")
    versions = {node: item["metadata"]["resourceVersion"] for node, item in slices(cluster, tenant).items()}
    writing.kill()
    tenant.remove_pod("on-slices-2")
    writing.start()
    writing.wait_until_it_leads()
    wait_until(lambda: set(addresses(cluster, tenant)) == {"slices-1"}, what="the slice of the gone pod is deleted")
    left = slices(cluster, tenant)["slices-1"]["metadata"]["resourceVersion"]
    assert left == versions["slices-1"]


def test_the_documented_command_deletes_the_slices_that_a_manager_left(
    cluster: Cluster, writing: ManagerProcess, tenant: Tenant
) -> None:
    add_pods(tenant, *NODES)
    wait_until(lambda: len(slices(cluster, tenant)) == len(NODES), what="slices are written")
    writing.kill()
    Kubectl(cluster.server.kubeconfig()).shell(deletion_of_slices())
    assert cluster.items(f"{GROUP}/networkslices") == []


def deletion_of_slices() -> str:
    """The command of the page on operations, which must act as the manager: nobody else may delete slices."""
    (command,) = (each for each in code(page("operations")) if each.startswith("kubectl delete cns"))
    return command
