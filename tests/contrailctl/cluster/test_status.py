"""`contrailctl status` of a cluster: what is wrong in which objects, and how it is shown."""

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec
import pytest

from contrail_config.kubernetes.pods import ContainerState, ContainerStatus, CreatedMetadata, Pod, PodStatus, Waiting
from contrail_config.objects import Refusal
from contrailctl.cluster.command import status_lines
from contrailctl.cluster.objects import Node
from contrailctl.cluster.pending_pods import NOT_ASSIGNED, PendingPod, PendingPods
from contrailctl.cluster.reading import ClusterObjects
from contrailctl.cluster.status import ClusterStatus, cluster_status

Change = Callable[[ClusterObjects], ClusterObjects]
CREATED = datetime.fromisoformat("2026-01-01T00:04:00Z")


def of_report(**fields: object) -> Change:
    """Replaces fields of the report of node-b."""

    def change(objects: ClusterObjects) -> ClusterObjects:
        assert objects.reports is not None
        found = objects.reports["node-b"]
        status = msgspec.structs.replace(found.status, **fields)
        return objects._replace(reports={**objects.reports, "node-b": msgspec.structs.replace(found, status=status)})

    return change


def of_agent_pod(*statuses: ContainerStatus) -> Change:
    """Replaces the states of the containers on node-b."""

    def change(objects: ClusterObjects) -> ClusterObjects:
        pod = msgspec.structs.replace(objects.agents["node-b"], status=PodStatus(container_statuses=statuses))
        return objects._replace(agents={**objects.agents, "node-b": pod})

    return change


def without_agent_pod(objects: ClusterObjects) -> ClusterObjects:
    return objects._replace(agents={"node-a": objects.agents["node-a"]})


def pending(reason: str, *, since: datetime = CREATED) -> Change:
    pod = PendingPod("shop", "web", "node-b", since, reason, "why")
    return lambda objects: objects._replace(pending=PendingPods((pod,), 0))


def crashing(name: str) -> ContainerStatus:
    waiting = Waiting("CrashLoopBackOff", "back-off 5m0s restarting")
    return ContainerStatus(name, restart_count=7, state=ContainerState(waiting=waiting))


def ready(name: str) -> ContainerStatus:
    return ContainerStatus(name, ready=True)


REFUSAL = Refusal(("d", "p", "n"), 7, "overlap", "d:p:n: 10.0.0.0/8 overlaps the node's route")

FAULTS: dict[str, tuple[Change, list[str]]] = {
    "no lease": (
        lambda objects: objects._replace(lease=None, is_renewed=False),
        ["manager: no lease: none has ever led in this --namespace"],
    ),
    "lease not renewed": (
        lambda objects: objects._replace(is_renewed=False),
        ["manager: none leads: node-a_1 has not renewed its lease since 2026-01-01T00:05:00Z"],
    ),
    "no definitions": (
        lambda objects: objects._replace(reports=None, lease=None, is_renewed=False),
        [
            "opencontrail.org: no ContrailNode in this cluster: no manager has run here, apply one of deploy/overlays",
            "manager: no lease: none has ever led in this --namespace",
        ],
    ),
    "daemon crashes": (
        of_agent_pod(ready("agent"), crashing("cnid")),
        ["node node-b: cnid: CrashLoopBackOff: back-off 5m0s restarting"],
    ),
    "installer waits": (
        of_agent_pod(ready("agent"), ready("cnid"), ContainerStatus("installer")),
        ["node node-b: installer: NotReady"],
    ),
    "installer crashes": (
        of_agent_pod(ready("agent"), ready("cnid"), crashing("installer")),
        ["node node-b: installer: CrashLoopBackOff: back-off 5m0s restarting"],
    ),
    "agent not ready": (
        of_report(not_ready=("datapath: VNI 7: no permission",)),
        ["node node-b: agent: not ready: datapath: VNI 7: no permission"],
    ),
    "old report": (
        of_report(reported_at="2025-12-31T23:00:00Z"),
        ["node node-b: agent: no report since 2025-12-31T23:00:00Z"],
    ),
    "two agents": (
        of_report(conflicts=("another agent reports for this node: other",)),
        ["node node-b: another agent reports for this node: other"],
    ),
    "refused network": (of_report(refused=(REFUSAL,)), [f"node node-b: {REFUSAL.message}"]),
    "no contrail-node pod": (without_agent_pod, ["node node-b: no contrail-node pod"]),
    "pod with a reason": (pending("NetworkNotFound"), ["pod shop/web: NetworkNotFound"]),
    "pod without a reason for a minute": (pending(NOT_ASSIGNED), [f"pod shop/web: {NOT_ASSIGNED}"]),
    "many pending pods": (
        lambda objects: objects._replace(pending=PendingPods((), 900)),
        ["900 more pending pods"],
    ),
}


def judged(objects: ClusterObjects, now: datetime) -> ClusterStatus:
    return cluster_status(objects, now=now)


def test_a_cluster_that_works_has_no_problems(objects: ClusterObjects, now: datetime) -> None:
    assert judged(objects, now).problems == ()


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_a_problem_and_nothing_else_is(objects: ClusterObjects, now: datetime, name: str) -> None:
    change, problems = FAULTS[name]
    assert list(judged(change(objects), now).problems) == problems


def test_a_pod_that_was_just_created_is_no_problem(objects: ClusterObjects, now: datetime) -> None:
    changed = pending(NOT_ASSIGNED, since=now - timedelta(seconds=3))(objects)
    assert judged(changed, now).problems == ()


def test_a_node_that_the_daemon_set_does_not_select_needs_no_agent(objects: ClusterObjects, now: datetime) -> None:
    windows = Node(CreatedMetadata(name="node-w", labels={"kubernetes.io/os": "windows"}))
    assert judged(objects._replace(nodes=(*objects.nodes, windows)), now).problems == ()


def test_a_contrail_api_server_as_store_has_no_reports(objects: ClusterObjects, now: datetime) -> None:
    assert judged(objects._replace(reports=None), now).problems == ()


def test_an_agent_outside_of_a_pod_is_known_by_its_report(objects: ClusterObjects, now: datetime) -> None:
    status = judged(objects._replace(agents={}, daemon_set=None), now)
    assert [(node.agent, node.daemon, node.version) for node in status.nodes] == [("Ready", "", "1.2")] * 2
    assert status.problems == ()


def test_the_state_is_shown_as_tables_and_problems(objects: ClusterObjects, now: datetime) -> None:
    changed = pending("NetworkNotFound")(of_agent_pod(ready("agent"), crashing("cnid"))(objects))
    text = "\n".join(status_lines(judged(changed, now), now=now))
    assert text.splitlines() == [
        "Leader: node-a_1",
        "",
        "MANAGER              NODE     STATE   RESTARTS   VERSION",
        "contrail-manager-1   node-a   Ready   0          1.2",
        "",
        (
            "NODE     AGENT   DAEMON             RESTARTS   DATAPATH   VERSION   REPORTED   PENDING DELETES   REFUSED"
            "   LAST ERROR"
        ),
        "node-a   Ready   Ready              0          linux      1.2       5m ago     0                 0         -",
        "node-b   Ready   CrashLoopBackOff   7          linux      1.2       5m ago     0                 0         -",
        "",
        "PENDING POD   NODE     AGE   REASON            MESSAGE",
        "shop/web      node-b   1m    NetworkNotFound   why",
        "",
        "Problems:",
        "  node node-b: cnid: CrashLoopBackOff: back-off 5m0s restarting",
        "  pod shop/web: NetworkNotFound",
        "",
        "2 nodes, 1 pending pod: 2 problems",
    ]


def test_what_agents_write_steers_no_terminal(objects: ClusterObjects, now: datetime) -> None:
    changed = of_report(conflicts=("first\n\x1b[2Jsecond",))(objects)
    text = "\n".join(status_lines(judged(changed, now), now=now))
    assert "  node node-b: first\\n\\x1b[2Jsecond" in text.splitlines()


def test_the_version_is_the_tag_of_the_image(objects: ClusterObjects, now: datetime) -> None:
    def version(image: str) -> str:
        pod: Pod = objects.managers[0]
        containers = (msgspec.structs.replace(pod.spec.containers[0], image=image),)
        spec = msgspec.structs.replace(pod.spec, containers=containers)
        changed = objects._replace(managers=(msgspec.structs.replace(pod, spec=spec),))
        return judged(changed, now).managers[0].version

    digest = "sha256:" + 64 * "0"
    assert version(f"registry.example:5000/contrail:1.2@{digest}") == "1.2"
    assert version(f"registry.example:5000/contrail@{digest}") == ""
