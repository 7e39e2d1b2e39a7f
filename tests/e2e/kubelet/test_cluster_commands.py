"""`contrailctl status`, `trace` and `sysdump` by kubectl and by real kubelets, with the rights that the docs name."""

import contextlib
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from contrailctl.sysdump.redaction import REDACTED
from tests.e2e.kubelet.cluster import TIMEOUT, Cluster
from tests.e2e.kubelet.node import Node
from tests.e2e.kubelet.operators import Operators, operators_of
from tests.e2e.kubelet.release import CHECKOUT
from tests.e2e.kubernetes.deployed.test_trace import ADD_STEPS
from tests.e2e.polling import wait_until
from tests.support.dump_archive import contents

STEPS = [
    "choose a node",
    "assign interfaces",
    "begin the sandbox",
    *ADD_STEPS,
    "finish the sandbox",
    "pull images and start containers",
    "become ready",
]
REASON = "NetworkNotFound: network attachment definition demo/missing not found"
_TOKENS = "var/lib/kubelet/pods/*/volumes/kubernetes.io~projected/*/token"
_NODE_PODS = "app.kubernetes.io/name=contrail-node"


@pytest.fixture(scope="module")
def operators(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operators]:
    """Operators of a cluster that has pods on both nodes."""
    cluster.apply("web")
    cluster("rollout", "status", "deployment/web", TIMEOUT)
    with operators_of(cluster, tmp_path_factory.mktemp("operators")) as operators:
        await_healthy(operators)
        yield operators
    cluster.delete("web")


def await_healthy(operators: Operators) -> None:
    """Waits until nothing is wrong: agents report a moment after they are ready."""
    wait_until(
        lambda: operators.status().status == 0,
        what="without a problem",
        otherwise=lambda: "".join(operators.status()[1:]),
    )


def test_a_healthy_cluster_has_a_leader_and_ready_nodes_and_no_problem(cluster: Cluster, operators: Operators) -> None:
    holder = cluster.kubectl("-n", "contrail", "get", "lease", "contrail-manager", "-o", "jsonpath={..holderIdentity}")
    shown = operators.status()
    assert (shown.status, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert (lines[0], lines[-1]) == (f"Leader: {holder}", "2 nodes, 0 pending pods: no problem found")
    found = operators.status("--output", "json").document
    assert (found["leader"], found["is_leading"], found["problems"]) == (holder, True, [])
    assert {(each["state"], each["version"]) for each in found["managers"]} == {("Ready", CHECKOUT.tag)}
    assert [(each["name"], each["agent"], each["daemon"], each["datapath"]) for each in found["nodes"]] == [
        (node.name, "Ready", "Ready", "linux") for node in cluster.nodes
    ]
    assert {each["version"] for each in found["nodes"]} == {version(cluster)}


def version(cluster: Cluster) -> str:
    """That of the programs in the image."""
    shown = cluster.kubectl(
        "-n", "contrail", "exec", "daemonset/contrail-node", "-c", "agent", "--", "contrailctl", "--version"
    )
    return shown.split()[-1]


def test_the_time_line_of_a_pod_has_all_steps_in_order_and_the_longest(cluster: Cluster, operators: Operators) -> None:
    for pod in cluster.pods("web"):
        found = operators.trace(pod.name, "--output", "json").document
        assert (found["uid"], found["node"], found["phase"], found["note"]) == (pod.uid, pod.node, "Running", "")
        steps = found["steps"]
        assert [step["name"] for step in steps] == STEPS
        begins = [datetime.fromisoformat(step["began"]) for step in steps]
        assert begins == sorted(begins)
        assert seconds(found["longest"]) == max(map(seconds, steps)) >= min(map(seconds, steps)) >= 0
        shown = operators.trace(pod.name)
        assert (shown.status, shown.err) == (0, "")
        lines = shown.out.splitlines()
        assert lines[0] == f"Pod demo/{pod.name} on {pod.node}: Running"
        # Another one than before, if a probe has failed meanwhile.
        assert any(lines[-1].startswith(f"Longest step: {name} (") for name in STEPS)


def seconds(step: dict[str, Any]) -> float:
    """How long a step took that has ended."""
    return (datetime.fromisoformat(step["ended"]) - datetime.fromisoformat(step["began"])).total_seconds()


@pytest.fixture(scope="module")
def dump(cluster: Cluster, operators: Operators, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of a dump. Somebody has put an operator's credentials where they do not belong."""
    file = tmp_path_factory.mktemp("dump") / "dump.tar.gz"
    kept = (
        f"--from-file=kubeconfig={operators.kubeconfig('sysdump')}",
        f"--from-literal=note={operators.tokens['trace']}",
    )
    cluster.kubectl("-n", "contrail", "create", "configmap", "careless", *kept)
    try:
        ended = operators.run("sysdump", "contrailctl", "sysdump", "--file", str(file))
    finally:
        cluster.kubectl("-n", "contrail", "delete", "configmap", "careless")
    assert (ended.status, ended.err) == (0, "")
    return contents(file)


def names(dump: dict[str, str], kind: str) -> set[str]:
    """Names of the objects of a kind."""
    return {json.loads(line)["metadata"]["name"] for line in dump[f"objects/{kind}.jsonl"].splitlines()}


def test_a_dump_has_the_status_and_the_objects(cluster: Cluster, dump: dict[str, str]) -> None:
    assert dump["problems.txt"] == ""
    assert dump["status.txt"].endswith("2 nodes, 0 pending pods: no problem found\n")
    assert json.loads(dump["status.json"])["problems"] == []
    assert names(dump, "contrailnodes") == names(dump, "nodes") == {node.name for node in cluster.nodes}
    pods = cluster.pods("web")
    assert {pod.name for pod in pods} <= names(dump, "pods")
    assert {pod.uid for pod in pods} <= names(dump, "virtualmachines")
    assert {"blue", "green"} <= names(dump, "network-attachment-definitions")
    empty = [name for name, text in dump.items() if not text.strip() and name != "problems.txt"]
    assert [name for name in empty if name != "objects/warnings-of-pods.jsonl"] == []


def test_a_dump_has_the_logs_of_all_containers(cluster: Cluster, dump: dict[str, str]) -> None:
    items = json.loads(cluster.kubectl("-n", "contrail", "get", "pods", "-o", "json"))["items"]
    containers = {(pod["metadata"]["name"], each["name"]) for pod in items for each in pod["spec"]["containers"]}
    assert {name for _, name in containers} == {"manager", "agent", "cnid", "installer"}
    assert {f"logs/{pod}/{name}.log" for pod, name in containers} == {name for name in dump if name.startswith("logs/")}


def test_a_dump_has_what_the_programs_of_each_node_say(cluster: Cluster, dump: dict[str, str]) -> None:
    for pod in cluster.pods("web"):
        node = f"nodes/{pod.node}"
        assert json.loads(dump[f"{node}/check.json"])["findings"] == []
        assert json.loads(dump[f"{node}/agent-readyz"])["ready"]
        assert json.loads(dump[f"{node}/cnid-readyz"])["ready"]
        assert json.loads(dump[f"{node}/agent-datapath-report"])["report"]["problems"] == {}
        assert pod.uid in {add["uid"] for add in json.loads(dump[f"{node}/cnid-adds"])["items"]}
        assert "\ncontrail_agent_" in dump[f"{node}/agent-metrics"]
        assert "\ncontrail_cnid_" in dump[f"{node}/cnid-metrics"]


def test_no_credential_is_in_a_dump(cluster: Cluster, operators: Operators, dump: dict[str, str]) -> None:
    """Neither one that kubelet has given to a pod nor one of an operator."""
    of_pods = [file.read_text() for node in cluster.nodes for file in node.host.root.glob(_TOKENS)]
    assert len(of_pods) >= 3 * len(cluster.nodes)  # each node has a pod of agent, manager and `web`
    parts = {part for token in (*of_pods, *operators.tokens.values()) for part in token.split(".")[1:]}
    assert [name for name, text in dump.items() if any(part in text for part in parts)] == []
    careless = [line for line in dump["objects/installation/configmaps.jsonl"].splitlines() if '"careless"' in line]
    assert [line.count(REDACTED) for line in careless] == [2]


@pytest.fixture
def waiting(cluster: Cluster) -> Iterator[str]:
    """A pod that waits for a network that does not exist."""
    annotations = "--annotations=k8s.v1.cni.cncf.io/networks=missing"
    cluster("run", "waiting", annotations, "--image=busybox:1", "--command", "--", "sleep", "1000")
    yield "waiting"
    cluster("delete", "pod", "waiting", "--grace-period=1", TIMEOUT)


def test_a_pod_that_waits_is_a_problem_with_its_reason(operators: Operators, waiting: str) -> None:
    wait_until(lambda: operators.status().status == 1, what="a problem", otherwise=lambda: operators.status().out)
    shown = operators.status()
    assert (shown.status, shown.err) == (1, "")
    lines = shown.out.splitlines()
    assert [line for line in lines if line.startswith("  ")] == [f"  pod demo/{waiting}: NetworkNotFound"]
    assert lines[-1] == "2 nodes, 1 pending pod: 1 problem"
    assert "network attachment definition demo/missing not found" in shown.out
    traced = operators.trace(waiting, "--output", "json").document
    assert traced["phase"] == "Pending"
    assert REASON in {step["detail"] for step in traced["steps"] if step["ended"] is None}
    assert REASON in operators.trace(waiting).out


def test_a_node_whose_agent_hangs_is_a_problem(cluster: Cluster, operators: Operators) -> None:
    node = cluster.nodes[0]
    with _frozen(cluster, node, "agent"):
        wait_until(lambda: not _is_ready(cluster, node, "agent"), what="unready by kubelet's probes")
        shown = operators.status("--output", "json")
    assert shown.status == 1
    assert f"node {node.name}: agent: NotReady" in shown.document["problems"]
    assert {each["name"]: each["agent"] for each in shown.document["nodes"]} == {
        "node-1": "NotReady",
        "node-2": "Ready",
    }
    await_healthy(operators)


@pytest.fixture
def conflicting(cluster: Cluster) -> Iterator[Node]:
    """A node with a configuration of another plugin that sorts before ours."""
    node = cluster.nodes[1]
    file = node.host.path("/etc/cni/net.d/05-other.conflist")
    plugins = [{"type": "contrail-loopback"}]
    file.write_text(json.dumps({"cniVersion": "1.0.0", "name": "other", "plugins": plugins}))
    yield node
    file.unlink()


def test_a_conflict_on_a_node_is_a_problem_an_event_and_in_its_report(
    cluster: Cluster, operators: Operators, conflicting: Node
) -> None:
    wait_until(lambda: operators.status().status == 1, what="a problem", otherwise=lambda: operators.status().out)
    (problem,) = operators.status("--output", "json").document["problems"]
    assert problem.startswith(f"node {conflicting.name}: ")
    assert "05-other.conflist" in problem
    report = json.loads(cluster.kubectl("get", "contrailnode", conflicting.name, "-o", "json"))
    assert [each for each in report["status"]["conflicts"] if "05-other.conflist" in each] != []
    selected = f"--field-selector=reason=NodeConflict,involvedObject.name={conflicting.name}"
    messages = [
        each["message"] for each in json.loads(cluster.kubectl("get", "events", "-A", selected, "-o", "json"))["items"]
    ]
    assert [each for each in messages if "05-other.conflist" in each] != []


def test_a_conflict_that_is_gone_is_no_problem(operators: Operators) -> None:
    await_healthy(operators)


@contextlib.contextmanager
def _frozen(cluster: Cluster, node: Node, container: str) -> Iterator[None]:
    """Stops the processes of a container of the node's pod; kubelet kills it if that takes longer than 25 s."""
    identifier = _status(cluster, node, container)["containerID"].removeprefix("containerd://")
    node.runtime.ctr("tasks", "pause", identifier)
    try:
        yield
    finally:
        node.runtime.ctr("tasks", "resume", identifier)


def _is_ready(cluster: Cluster, node: Node, container: str) -> bool:
    return bool(_status(cluster, node, container)["ready"])


def _status(cluster: Cluster, node: Node, container: str) -> dict[str, Any]:
    where = ("-l", _NODE_PODS, f"--field-selector=spec.nodeName={node.name}")
    (pod,) = json.loads(cluster.kubectl("-n", "contrail", "get", "pods", *where, "-o", "json"))["items"]
    (status,) = [each for each in pod["status"]["containerStatuses"] if each["name"] == container]
    found: dict[str, Any] = status
    return found
