"""Output of `kubectl get cvm,cvn,cab,cns,cn`: short names and printer columns."""

import importlib.metadata

from tests.e2e.kubernetes.deployed.cluster import GROUP, Cluster, Object, Tenant, addresses, wait_until
from tests.support.cluster_processes import AgentProcess

Agents = tuple[AgentProcess, AgentProcess]


def shown(cluster: Cluster, kind: str) -> list[Object]:
    """The cells of each row; `Age` is checked and removed."""
    rows = cluster.server.table(f"{GROUP}/{kind}")
    assert all(row.pop("Age") for row in rows)
    return rows


def test_each_kind_has_a_short_name(cluster: Cluster, agents: Agents) -> None:
    served = cluster.server.ask("GET", GROUP)["resources"]
    assert {item["name"]: item["shortNames"] for item in served if "shortNames" in item} == {
        "virtualmachines": ["cvm"],
        "virtualnetworks": ["cvn"],
        "addressblocks": ["cab"],
        "networkslices": ["cns"],
        "contrailnodes": ["cn"],
    }


def test_a_virtual_machine_shows_pod_node_addresses_and_networks(
    cluster: Cluster, tenant: Tenant, agents: Agents
) -> None:
    tenant.add_nad("blue", cidr="10.1.0.0/24,fd00:1::/64")
    uid = tenant.add_pod("web", networks="blue", node="node-1")
    allocated = addresses(tenant.assigned("web"))
    (row,) = [row for row in shown(cluster, "virtualmachines") if row["Pod Namespace"] == tenant.namespace]
    assert row == {
        "Name": uid,
        "Pod Namespace": tenant.namespace,
        "Pod": "web",
        "Node": "node-1",
        "Interfaces": 2,
        "Addresses": ",".join(allocated),
        "Pending": None,
        "Networks": "k8s-default-pod-network,k8s-blue-pod-network",
    }


def test_a_waiting_pod_shows_its_reason(cluster: Cluster, tenant: Tenant, agents: Agents) -> None:
    uid = tenant.add_pod("web", networks="blue", node="node-1")

    def rows() -> list[Object]:
        return [row for row in shown(cluster, "virtualmachines") if row["Name"] == uid]

    wait_until(lambda: bool(rows()), what="the reason is stored")
    (row,) = rows()
    assert (row["Interfaces"], row["Addresses"], row["Pending"]) == (0, "", "NetworkNotFound")
    tenant.add_nad("blue", cidr="10.1.0.0/24")
    wait_until(lambda: rows()[0]["Interfaces"] == 2, what="the pod has its interfaces")
    assert rows()[0]["Pending"] is None
    tenant.remove_pod("web")
    wait_until(lambda: not rows(), what="the virtual machine is deleted")


def test_a_virtual_network_shows_name_vni_subnets_and_nad(cluster: Cluster, tenant: Tenant, agents: Agents) -> None:
    tenant.add_nad("blue", cidr="10.1.0.0/24,fd00:1::/64")
    wait_until(lambda: len(tenant.networks()) == 1, what="the network exists")
    (network,) = tenant.networks()
    (row,) = [row for row in shown(cluster, "virtualnetworks") if row["Nad"] == f"{tenant.namespace}/blue"]
    assert row == {
        "Name": network["metadata"]["name"],
        "Network": f"default-domain:k8s-{tenant.namespace}:k8s-blue-pod-network",
        "VNI": network["spec"]["vni"],
        "Subnets": "10.1.0.0/24,fd00:1::/64",
        "Nad": f"{tenant.namespace}/blue",
        "Retired": network["spec"].get("retired"),
    }


def test_an_address_block_shows_allocated_and_held_counts(cluster: Cluster, tenant: Tenant, agents: Agents) -> None:
    tenant.add_nad("blue", cidr="10.1.0.0/24")
    for name in ("one", "two"):
        tenant.add_pod(name, networks="blue", node="node-1")
        tenant.assigned(name)
    tenant.remove_pod("two")
    wait_until(lambda: tenant.virtual_machine("two") is None, what="two is released")
    (network,) = [item["metadata"]["name"] for item in tenant.networks()]

    def counts() -> list[tuple[str, int, int]]:
        rows = [row for row in shown(cluster, "addressblocks") if row["Network"] == network]
        return [(row["First"], row["Given"], row["Held"]) for row in rows]

    wait_until(lambda: counts() == [("10.1.0.0", 1, 1)], what="one address is allocated and one held")


def test_a_node_shows_its_agents_version_and_when_it_reported(cluster: Cluster, agents: Agents) -> None:
    def nodes() -> dict[str, Object]:
        return {row["Name"]: row for row in shown(cluster, "contrailnodes")}

    wait_until(lambda: "node-1" in nodes(), what="the node reports")
    row = nodes()["node-1"]
    assert row.pop("Reported")
    assert row["Agent"] == importlib.metadata.version("contrail-multinet")
    assert set(row) == {"Name", "Agent", "MTU", "Pending Deletes", "Last Error", "Conflict"}
