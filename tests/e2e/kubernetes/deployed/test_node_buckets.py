"""Namespaces of virtual machines: created by the manager with its own rights, and the only ones that count."""

import contextlib
import uuid
from urllib.error import HTTPError

import pytest

from contrail_config.kubernetes.node_buckets import NODE_BUCKETS, node_bucket
from contrailctl.cli import main
from tests.e2e.kubernetes.deployed.cluster import GROUP, NAMESPACE, Cluster, Object, Tenant, addresses, wait_until
from tests.support.cluster_processes import AgentProcess, ManagerProcess

Agents = tuple[AgentProcess, AgentProcess]


def forged(tenant: Tenant, victim: Object, pod: str, uid: str) -> Object:
    """A copy of a virtual machine for another pod, in the tenant's namespace."""
    spec = {**victim, "uuid": uid, "pod": pod, "name": f"k8s__{tenant.namespace}__{pod}"}
    kind = {"apiVersion": "opencontrail.org/v1alpha1", "kind": "VirtualMachine"}
    labels = {"opencontrail.org/node": "node-1"}
    return {**kind, "metadata": {"name": uid, "namespace": tenant.namespace, "labels": labels}, "spec": spec}


def system_token(cluster: Cluster) -> str:
    """A token that admission policies let write virtual machines: a cluster may have none."""
    return cluster.server.service_account_token(NAMESPACE, "contrail-manager")


def test_a_virtual_machine_in_a_tenants_namespace_is_served_by_nobody(
    cluster: Cluster, tenant: Tenant, manager: ManagerProcess, agents: Agents
) -> None:
    tenant.add_pod("victim", node="node-1")
    victim = tenant.assigned("victim")
    uid = str(uuid.uuid4())
    path = f"{GROUP}/namespaces/{tenant.namespace}/virtualmachines"
    cluster.server.ask("POST", path, forged(tenant, victim, "thief", uid), token=system_token(cluster))
    tenant.add_pod("later", node="node-1")
    assert agents[0].interfaces(tenant.namespace, "later", wait=10)
    assert agents[0].ask(f"/vm-cfg/k8s__{tenant.namespace}__thief")[0] == 404


def test_a_deleted_namespace_is_created_again_with_the_virtual_machines_of_living_pods(
    cluster: Cluster, tenant: Tenant, agents: Agents
) -> None:
    """No controller finishes the deletion here, so the test does: it deletes the objects and then the namespace."""
    tenant.add_pod("web", node="node-1")
    before = tenant.assigned("web")
    bucket = node_bucket("node-1")
    path = f"/api/v1/namespaces/{bucket}"
    first = cluster.server.ask("GET", path)["metadata"]["uid"]
    cluster.server.ask("DELETE", path)
    for item in cluster.items(f"{GROUP}/namespaces/{bucket}/virtualmachines"):
        name = item["metadata"]["name"]
        object_path = f"{GROUP}/namespaces/{bucket}/virtualmachines/{name}"
        cluster.server.ask("DELETE", object_path, token=system_token(cluster))
    finalized = cluster.server.ask("GET", path) | {"spec": {"finalizers": []}}
    cluster.server.ask("PUT", f"{path}/finalize", finalized)

    def is_new() -> bool:
        with contextlib.suppress(HTTPError):
            return bool(cluster.server.ask("GET", path)["metadata"]["uid"] != first)
        return False

    wait_until(is_new, what="the namespace is created again")
    assert tenant.assigned("web") == before
    assert agents[0].interfaces(tenant.namespace, "web", wait=10)


def test_contrailctl_finds_the_interfaces_of_a_pod_by_its_name(
    tenant: Tenant, manager: ManagerProcess, agents: Agents, capsys: pytest.CaptureFixture[str]
) -> None:
    tenant.add_pod("web", node="node-1")
    allocated = addresses(tenant.assigned("web"))
    commands = (["get", "interfaces", "-n", tenant.namespace, "web"], ["describe", "pod", f"{tenant.namespace}/web"])
    for command in commands:
        assert main(["--manager", f"http://{manager.listen}", *command]) == 0
        shown = capsys.readouterr().out
        assert all(address in shown for address in allocated)


def test_only_namespaces_of_buckets_have_virtual_machines(cluster: Cluster, tenant: Tenant, agents: Agents) -> None:
    for number in range(4):
        tenant.add_pod(f"web-{number}", node=f"node-{number}")
        tenant.assigned(f"web-{number}")
    found = [tenant.virtual_machine(f"web-{number}") for number in range(4)]
    assert [item["metadata"]["namespace"] for item in found if item] == [node_bucket(f"node-{n}") for n in range(4)]
    assert {item["metadata"]["namespace"] for item in found if item} <= set(NODE_BUCKETS)
