"""`contrailctl status` on a cluster with the shipped manifests: who leads, what agents report, which pods wait."""

import json
import subprocess
from typing import Any

from contrailctl.cluster.pending_pods import ON_NODE
from tests.e2e.kubernetes.deployed.cluster import GROUP, Cluster, Tenant, wait_until
from tests.support.cluster_processes import BINARIES, AgentProcess, ManagerProcess

Agents = tuple[AgentProcess, AgentProcess]

_MESSAGE = "plugin type=contrail-k8s-cni failed"


def status(cluster: Cluster, *options: str) -> "subprocess.CompletedProcess[str]":
    """Runs the command as an administrator."""
    command = [str(BINARIES / "contrailctl"), "status", "--kubeconfig", str(cluster.server.kubeconfig()), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def document(cluster: Cluster) -> dict[str, Any]:
    ended = status(cluster, "--output", "json")
    assert ended.returncode in (0, 1), ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def test_the_leader_and_the_reports_of_agents_are_shown(
    cluster: Cluster, manager: ManagerProcess, agents: Agents
) -> None:
    wait_until(lambda: len(cluster.items(f"{GROUP}/contrailnodes")) >= 2, what="both nodes report")
    lease = cluster.server.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/contrail/leases/contrail-manager")
    found = document(cluster)
    assert (found["leader"], found["is_leading"]) == (lease["spec"]["holderIdentity"], True)
    nodes = {node["name"]: node for node in found["nodes"]}
    assert {(nodes[name]["datapath"], nodes[name]["pending_deletes"]) for name in ("node-1", "node-2")} == {("none", 0)}
    assert nodes["node-1"]["not_ready"] == []


def test_a_pod_that_waits_is_shown_with_the_reason_of_the_manager(
    cluster: Cluster, manager: ManagerProcess, tenant: Tenant
) -> None:
    tenant.add_pod("web", node="node-1", networks="missing")
    tenant.wait_for_event("web", "NetworkNotFound")

    def found() -> list[tuple[str, str]]:
        pods = document(cluster)["pending"]
        return [(pod["name"], pod["reason"]) for pod in pods if pod["namespace"] == tenant.namespace]

    wait_until(lambda: found() == [("web", "NetworkNotFound")], what="the reason is shown")
    ended = status(cluster)
    assert ended.returncode == 1
    assert f"  pod {tenant.namespace}/web: NetworkNotFound" in ended.stdout.splitlines()


def test_a_pod_that_its_node_cannot_start_is_shown_with_the_message_of_the_runtime(
    cluster: Cluster, manager: ManagerProcess, tenant: Tenant
) -> None:
    uid = tenant.add_pod("web", node="node-1")
    tenant.assigned("web")
    _add_failure(cluster, tenant, uid=uid)
    pods = [pod for pod in document(cluster)["pending"] if pod["namespace"] == tenant.namespace]
    assert [(pod["reason"], pod["message"]) for pod in pods] == [("FailedCreatePodSandBox", _MESSAGE)]


def _add_failure(cluster: Cluster, tenant: Tenant, *, uid: str) -> None:
    """Writes the event of a runtime that could not start pod `web`."""
    event = {
        "metadata": {"name": "web.1", "namespace": tenant.namespace},
        "involvedObject": {"kind": "Pod", "namespace": tenant.namespace, "name": "web", "uid": uid},
        "reason": "FailedCreatePodSandBox",
        "message": _MESSAGE,
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    cluster.server.ask("POST", f"/api/v1/namespaces/{tenant.namespace}/events", event)


def test_the_message_of_an_earlier_pod_of_the_name_is_not_shown(
    cluster: Cluster, manager: ManagerProcess, tenant: Tenant
) -> None:
    tenant.add_pod("web", node="node-1")
    tenant.assigned("web")
    _add_failure(cluster, tenant, uid="0b7a3c1e-0000-4000-8000-000000000001")
    pods = [pod for pod in document(cluster)["pending"] if pod["namespace"] == tenant.namespace]
    assert [pod["reason"] for pod in pods] == [ON_NODE]


def test_a_pod_that_is_being_deleted_is_not_pending(cluster: Cluster, manager: ManagerProcess, tenant: Tenant) -> None:
    for name in ("deleted", "kept"):
        tenant.add_pod(name, node="node-1")
    cluster.server.ask(
        "DELETE", f"/api/v1/namespaces/{tenant.namespace}/pods/deleted"
    )  # remains until its node ends it
    assert tenant.pod("deleted")["metadata"]["deletionTimestamp"]
    pods = [pod["name"] for pod in document(cluster)["pending"] if pod["namespace"] == tenant.namespace]
    assert pods == ["kept"]


def test_a_cluster_that_cannot_be_read_has_an_exit_status_of_its_own(cluster: Cluster) -> None:
    account = cluster.kubeconfig("contrail-agent")
    ended = subprocess.run(
        [str(BINARIES / "contrailctl"), "status", "--kubeconfig", str(account)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "leases" in ended.stderr


def test_a_namespace_without_a_manager_has_no_leader(cluster: Cluster, manager: ManagerProcess) -> None:
    ended = status(cluster, "--namespace", "default")
    assert ended.returncode == 1
    assert "  manager: no lease: none has ever led in this --namespace" in ended.stdout.splitlines()
