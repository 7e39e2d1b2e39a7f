"""State of a cluster: who leads, each node's agent, daemon and datapath, pending pods, and what is wrong. Pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from contrail_config.kubernetes.kinds import NodeReport
from contrail_config.kubernetes.pods import ContainerStatus, Pod
from contrailctl.cluster.objects import AGENT_CONTAINER, DAEMON_CONTAINER, INSTALLER_CONTAINER, Lease, Node
from contrailctl.cluster.pending_pods import NOT_ASSIGNED, ON_NODE, PendingPod
from contrailctl.cluster.reading import ClusterObjects

MANAGER_CONTAINER = "manager"
READY = "Ready"

_OLD = timedelta(minutes=15)
"""Age of a report whose agent is gone: it writes one every 5 minutes, and clocks differ."""

_STARTING = timedelta(seconds=30)
"""For which a pod may be pending without being a problem, as long as nobody gives a reason."""

_NOT_INSTALLED = (
    "opencontrail.org: no ContrailNode in this cluster: no manager has run here, apply one of deploy/overlays"
)


class ManagerStatus(msgspec.Struct, frozen=True):
    """A pod of a manager."""

    name: str
    node: str
    state: str
    restarts: int
    version: str


class NodeStatus(msgspec.Struct, frozen=True):
    """A node. `agent` and `daemon` are states of containers; what is not known is empty or None.

    `reported`: when the agent wrote its last report, by the clock of the node.
    """

    name: str
    agent: str = ""
    daemon: str = ""
    restarts: int = 0
    datapath: str = ""
    version: str = ""
    reported: datetime | None = None
    pending_deletes: int | None = None
    refused: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ()
    last_errors: tuple[str, ...] = ()


class ClusterStatus(msgspec.Struct, frozen=True):
    """The whole. `leader` is the identity that holds the lease, `other_pending` those beyond the ones listed."""

    leader: str
    is_leading: bool
    managers: tuple[ManagerStatus, ...]
    nodes: tuple[NodeStatus, ...]
    pending: tuple[PendingPod, ...]
    other_pending: int
    problems: tuple[str, ...]


def cluster_status(objects: ClusterObjects, *, now: datetime) -> ClusterStatus:
    """Returns the state; `now` has a time zone."""
    nodes = [_node_status(name, objects) for name in _names(objects)]
    return ClusterStatus(
        objects.lease.spec.holder_identity if objects.lease else "",
        objects.is_renewed,
        tuple(map(_manager_status, objects.managers)),
        tuple(nodes),
        objects.pending.explained,
        objects.pending.others,
        tuple(_problems(objects, nodes, now)),
    )


def _names(objects: ClusterObjects) -> list[str]:
    known = {node.metadata.name for node in objects.nodes}
    return sorted(known | objects.agents.keys() | (objects.reports or {}).keys())


def _manager_status(pod: Pod) -> ManagerStatus:
    container = pod.container(MANAGER_CONTAINER)
    restarts = container.restart_count if container else 0
    state, version = _state(container), _tag(pod.image(MANAGER_CONTAINER))
    return ManagerStatus(pod.metadata.name, pod.spec.node_name, state, restarts, version)


def _node_status(name: str, objects: ClusterObjects) -> NodeStatus:
    pod = objects.agents.get(name)
    report = (objects.reports or {}).get(name)
    status = NodeStatus(name) if report is None else _of_report(name, report.status)
    if pod is None:
        return status
    agent, daemon = pod.container(AGENT_CONTAINER), pod.container(DAEMON_CONTAINER)
    return msgspec.structs.replace(
        status,
        agent=_state(agent),
        daemon=_state(daemon),
        restarts=sum(each.restart_count for each in (agent, daemon) if each),
        version=status.version or _tag(pod.image(AGENT_CONTAINER)),
    )


def _of_report(name: str, report: NodeReport) -> NodeStatus:
    return NodeStatus(
        name,
        agent="NotReady" if report.not_ready else READY,
        datapath=report.datapath or "",
        version=report.versions.get("agent", ""),
        reported=report.time,
        pending_deletes=report.pending_deletes,
        refused=tuple(each.message for each in report.refused),
        conflicts=report.conflicts,
        not_ready=report.not_ready,
        last_errors=report.last_errors,
    )


def _state(container: ContainerStatus | None) -> str:
    """Returns `Ready`, `NotReady`, or why the container does not run."""
    if container is None:
        return "Missing"
    if container.ready:
        return READY
    waiting = container.state.waiting
    return (waiting.reason if waiting else "") or "NotReady"


def _tag(image: str) -> str:
    """Returns the tag of an image, empty if it has none."""
    name = image.partition("@")[0].rpartition("/")[2]
    return name.rpartition(":")[2] if ":" in name else ""


def _problems(objects: ClusterObjects, nodes: list[NodeStatus], now: datetime) -> Iterator[str]:
    if objects.reports is None and not objects.is_renewed:  # with a Contrail API server as store there are none
        yield _NOT_INSTALLED
    yield from _lease_problems(objects.lease, is_renewed=objects.is_renewed)
    for pod in objects.managers:
        state = _manager_status(pod).state
        if state != READY:
            yield f"manager {pod.metadata.name}: {_explained(state, pod.container(MANAGER_CONTAINER))}"
    by_name = {node.metadata.name: node for node in objects.nodes}
    for status in nodes:
        yield from (
            f"node {status.name}: {problem}"
            for problem in _node_problems(status, by_name.get(status.name), objects, now)
        )
    yield from _pod_problems(objects, now)


def _lease_problems(lease: Lease | None, *, is_renewed: bool) -> Iterator[str]:
    if lease is None:
        yield "manager: no lease: none has ever led in this --namespace"
    elif not lease.spec.holder_identity:
        yield "manager: none leads: the last leader released its lease"
    elif not is_renewed:
        renewed = f" since {lease.spec.renew_time:%Y-%m-%dT%H:%M:%SZ}" if lease.spec.renew_time else ""
        yield f"manager: none leads: {lease.spec.holder_identity} has not renewed its lease{renewed}"


def _node_problems(status: NodeStatus, node: Node | None, objects: ClusterObjects, now: datetime) -> Iterator[str]:
    pod = objects.agents.get(status.name)
    if pod is not None:
        for container, state in ((AGENT_CONTAINER, status.agent), (DAEMON_CONTAINER, status.daemon)):
            if state != READY and not (container == AGENT_CONTAINER and status.not_ready):
                yield f"{container}: {_explained(state, pod.container(container))}"
        installer = pod.container(INSTALLER_CONTAINER)
        if installer is not None and not installer.ready:  # an older release has none
            yield f"installer: {_explained(_state(installer), installer)}"
    elif node is not None and objects.daemon_set is not None and objects.daemon_set.selects(node):
        yield "no contrail-node pod"
    if objects.reports is not None and pod is not None and status.name not in objects.reports:
        yield "agent: no report yet"
    if status.reported is not None and now - status.reported > _OLD:
        yield f"agent: no report since {status.reported:%Y-%m-%dT%H:%M:%SZ}"
    yield from (f"agent: not ready: {reason}" for reason in status.not_ready)
    yield from status.conflicts
    yield from status.refused


def _explained(state: str, container: ContainerStatus | None) -> str:
    waiting = container.state.waiting if container else None
    return f"{state}: {waiting.message}" if waiting and waiting.message else state


def _pod_problems(objects: ClusterObjects, now: datetime) -> Iterator[str]:
    for pod in objects.pending.explained:
        has_reason = pod.reason not in (NOT_ASSIGNED, ON_NODE)
        if has_reason or (pod.since is not None and now - pod.since > _STARTING):
            yield f"pod {pod.namespace}/{pod.name}: {pod.reason}"
    if objects.pending.others:
        yield f"{objects.pending.others} more pending pods"
