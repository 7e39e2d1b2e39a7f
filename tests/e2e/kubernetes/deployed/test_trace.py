"""`contrailctl trace`: the start of a pod from a real API server, a manager, an agent, and the daemon of its node.

The kernel of the node connects the pod.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kubernetes.deployed.cluster import Cluster, Tenant, wait_until
from tests.e2e.kubernetes.deployed.test_network_slices import deletion_of_slices
from tests.support.cluster_processes import BINARIES, AgentProcess, ManagerProcess, running
from tests.support.kubectl.client import Kubectl
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks
from tests.support.plugin import LONG_POLL, Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon

ADD_STEPS = [
    "ADD: wait for a slot of the daemon",
    "ADD: wait for the interface list",
    "ADD: create the links",
    "ADD: connect them to their networks",
    "ADD: wait for the agent to store the ports",
    "ADD: answer",
]


@pytest.fixture(scope="module")
def agent(
    manager: ManagerProcess, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AgentProcess]:
    """The agent of `node-1`. It would wait for a slice of its node if there were those of other tests."""
    Kubectl(cluster.server.kubeconfig()).shell(deletion_of_slices())
    work = tmp_path_factory.mktemp("node-1")
    agent = AgentProcess(work, cluster.agent_kubeconfig("node-1"), node="node-1", datapath="linux")
    with running(agent):
        yield agent
        assert agent.stop() == 0


@pytest.fixture
def plugin(agent: AgentProcess, make_netns: Callable[[str], Netns], tmp_path: Path) -> Iterator[Plugin]:
    """The plugin with its daemon, on the node of the agent."""
    node = make_netns("node")
    networks = NodeNetworks(tmp_path / "networks")
    caller = ShimAndDaemon(node, tmp_path / "cni.json")
    plugin = Plugin(node, tmp_path, str(agent.socket), caller)
    plugin.settings |= {"netns-dir": str(networks.folder), **LONG_POLL}
    caller.configuration = {"metrics-listen": "127.0.0.1:9092", **plugin.settings}
    yield plugin
    caller.close()
    networks.close()


def trace(cluster: Cluster, pod: str, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [str(BINARIES / "contrailctl"), "trace", pod, "--kubeconfig", str(cluster.server.kubeconfig()), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def start(cluster: Cluster, tenant: Tenant, name: str) -> None:
    """Writes what scheduler and kubelet write of a pod that runs."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    pod = tenant.pod(name)
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": now}
        for kind in ("PodScheduled", "PodReadyToStartContainers", "Ready")
    ]
    running = {"name": "main", "ready": True, "restartCount": 0, "image": "i", "imageID": "i"}
    pod["status"] |= {
        "phase": "Running",
        "conditions": conditions,
        "containerStatuses": [{**running, "state": {"running": {"startedAt": now}}}],
    }
    cluster.server.ask("PUT", f"/api/v1/namespaces/{tenant.namespace}/pods/{name}/status", pod)


def schedule(cluster: Cluster, tenant: Tenant, name: str) -> None:
    """Writes what the scheduler writes of a pod."""
    pod = tenant.pod(name)
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": pod["metadata"]["creationTimestamp"]}
    pod["status"]["conditions"] = [scheduled]
    cluster.server.ask("PUT", f"/api/v1/namespaces/{tenant.namespace}/pods/{name}/status", pod)


def on_node(plugin: Plugin) -> str:
    """The command that runs contrailctl on the node."""
    return f"nsenter --net={plugin.node.path} {BINARIES / 'contrailctl'}"


def test_the_time_line_has_the_steps_of_manager_daemon_and_kubelet(
    cluster: Cluster, tenant: Tenant, plugin: Plugin, make_netns: Callable[[str], Netns]
) -> None:
    uid = tenant.add_pod("web", node="node-1")
    sandbox = PodSandbox(make_netns("pod").path, name="web", namespace=tenant.namespace, uid=uid)
    plugin.add(sandbox).succeeded()
    start(cluster, tenant, "web")
    ended = trace(cluster, f"{tenant.namespace}/web", "--node-command", on_node(plugin), "--output", "json")
    assert (ended.returncode, ended.stderr) == (0, "")
    found: dict[str, Any] = json.loads(ended.stdout)
    assert (found["uid"], found["node"], found["note"]) == (uid, "node-1", "")
    names = [step["name"] for step in found["steps"]]
    assert [name for name in names if name.startswith("ADD")] == ADD_STEPS
    assert {"choose a node", "assign interfaces", "begin the sandbox", "finish the sandbox", "become ready"} < set(
        names
    )
    assert all(step["ended"] is not None for step in found["steps"])


def test_a_pod_that_waits_says_for_what(cluster: Cluster, tenant: Tenant, plugin: Plugin) -> None:
    tenant.add_pod("web", node="node-1", networks="missing")
    tenant.wait_for_event("web", "NetworkNotFound")
    schedule(cluster, tenant, "web")

    def shown() -> str:
        return trace(cluster, f"{tenant.namespace}/web", "--node-command", "false").stdout

    wait_until(lambda: "NetworkNotFound: " in shown(), what="the reason of the manager is shown")
    text = shown()
    assert f"Pod {tenant.namespace}/web on node-1: Pending" in text
    assert "so far" in text
    assert "Without the ADDs of the pod: node-1: false: exit status 1" in text


def test_a_missing_pod_is_not_found(cluster: Cluster, tenant: Tenant) -> None:
    ended = trace(cluster, f"{tenant.namespace}/missing")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"pod {tenant.namespace}/missing not found" in ended.stderr


def test_the_manager_serves_the_time_line(cluster: Cluster, manager: ManagerProcess, tenant: Tenant) -> None:
    uid = tenant.add_pod("web", node="node-1")
    tenant.assigned("web")
    start(cluster, tenant, "web")
    found = manager.get(f"/v1/pods/{tenant.namespace}/web/trace")
    assert found is not None
    assert (found["uid"], found["node"], found["phase"]) == (uid, "node-1", "Running")
    names = {step["name"] for step in found["steps"]}
    assert {"choose a node", "assign interfaces", "create the sandbox", "become ready"} <= names


def test_the_manager_serves_what_a_waiting_pod_waits_for(
    cluster: Cluster, manager: ManagerProcess, tenant: Tenant
) -> None:
    tenant.add_pod("web", node="node-1", networks="missing")
    tenant.wait_for_event("web", "NetworkNotFound")
    schedule(cluster, tenant, "web")

    def details() -> list[str]:
        found = manager.get(f"/v1/pods/{tenant.namespace}/web/trace") or {"steps": []}
        return [step["detail"] for step in found["steps"] if step["name"] == "create the sandbox"]

    wait_until(lambda: any(each.startswith("NetworkNotFound: ") for each in details()), what="the reason is served")


@pytest.mark.parametrize("name", ["missing", "a,metadata.namespace=kube-system", "A%20B"])
def test_the_manager_has_no_time_line_of_a_pod_that_does_not_exist(
    cluster: Cluster, manager: ManagerProcess, tenant: Tenant, name: str
) -> None:
    assert manager.get(f"/v1/pods/{tenant.namespace}/{name}/trace") is None
