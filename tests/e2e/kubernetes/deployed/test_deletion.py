"""Deletion of pods and NADs releases their virtual machines, addresses and networks; recreated pods are new."""

from collections.abc import Callable

from tests.e2e.kubernetes.deployed.cluster import GROUP, Cluster, Tenant, addresses, wait_until
from tests.e2e.kubernetes.deployed.runtime import Runtime
from tests.support.address_blocks import block_entries
from tests.support.cluster_processes import AgentProcess
from tests.support.netns import Netns
from tests.support.plugin import PodSandbox

Agents = tuple[AgentProcess, AgentProcess]


def allocated(cluster: Cluster, network: str) -> int:
    """Number of allocated addresses of a network."""
    blocks = [item for item in cluster.items(f"{GROUP}/addressblocks") if item["spec"]["network"] == network]
    return sum(item["status"]["given"] for item in blocks)


def test_deletion_releases_virtual_machines_addresses_and_networks(
    cluster: Cluster, tenant: Tenant, agents: Agents
) -> None:
    tenant.add_nad("blue", cidr="10.1.0.0/24")
    for name in ("one", "two"):
        tenant.add_pod(name, networks="blue,blue", node="node-1")
    virtual_machines = [tenant.assigned(name) for name in ("one", "two")]
    (network,) = [item["metadata"]["name"] for item in tenant.networks()]
    assert allocated(cluster, network) == 4

    tenant.remove_pod("one")
    wait_until(
        lambda: tenant.virtual_machine("one") is None and allocated(cluster, network) == 2, what="one is released"
    )
    tenant.remove_nad("blue")
    tenant.remove_pod("two")
    wait_until(lambda: tenant.virtual_machine("two") is None and not tenant.networks(), what="everything is released")
    wait_until(lambda: not agents[0].interfaces(tenant.namespace, "two"), what="the agent has seen the deletion")
    owners = {one.owner for one in block_entries(cluster.items(f"{GROUP}/addressblocks")) if one.held is None}
    assert not owners & {
        interface["uuid"] for virtual_machine in virtual_machines for interface in virtual_machine["interfaces"]
    }


def test_a_recreated_pod_of_the_same_name_is_a_new_pod(tenant: Tenant, agents: Agents) -> None:
    tenant.add_nad("blue", cidr="10.1.0.0/24")
    first_uid = tenant.add_pod("db-0", networks="blue", node="node-1")
    first = tenant.assigned("db-0")
    assert agents[0].interfaces(tenant.namespace, "db-0", wait=10)
    tenant.remove_pod("db-0")
    second_uid = tenant.add_pod("db-0", networks="blue", node="node-1")
    page = f"/vm-cfg/k8s__{tenant.namespace}__db-0?uid="
    assert len(agents[0].get(f"{page}{second_uid}&wait=10")) == 2
    assert agents[0].ask(f"{page}{first_uid}")[0] == 404
    assert not set(addresses(first)) & set(addresses(tenant.assigned("db-0")))


def test_an_ended_pod_releases_its_addresses_while_its_object_exists(
    cluster: Cluster, tenant: Tenant, agents: Agents
) -> None:
    tenant.add_nad("blue", cidr="10.1.0.0/24")
    tenant.add_pod("job", networks="blue", node="node-1")
    tenant.assigned("job")
    (network,) = [item["metadata"]["name"] for item in tenant.networks()]
    tenant.end_pod("job")
    wait_until(
        lambda: tenant.virtual_machine("job") is None and allocated(cluster, network) == 0, what="the job is released"
    )
    assert tenant.pod("job")["status"]["phase"] == "Succeeded"


def test_del_succeeds_after_the_pods_virtual_machine_is_deleted(
    tenant: Tenant, agents: Agents, runtime: Runtime, make_netns: Callable[[str], Netns]
) -> None:
    sandbox = make_netns("pod")
    uid = tenant.add_pod("web", node="node-1")
    pod = PodSandbox(sandbox.path, name="web", namespace=tenant.namespace, uid=uid)
    runtime.add(pod).succeeded()
    tenant.remove_pod("web")
    wait_until(lambda: not agents[0].interfaces(tenant.namespace, "web"), what="the agent has seen the deletion")
    runtime.delete(pod).succeeded()
    assert (sandbox.links(), runtime.plugin.node.links()) == ([], [])
