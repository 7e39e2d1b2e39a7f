"""`contrailctl status` of a cluster: reads it, and shows its state as tables and problems."""

import argparse
import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

from contrailctl.age import format_age
from contrailctl.cluster.reading import read_cluster
from contrailctl.cluster.status import ClusterStatus, NodeStatus, cluster_status
from contrailctl.kubeconfig import connected
from contrailctl.output import Output
from contrailctl.progress import Progress
from contrailctl.table import counted, format_table, printable

_MANAGER_HEADER = ("MANAGER", "NODE", "STATE", "RESTARTS", "VERSION")
_NODE_HEADER = (
    "NODE",
    "AGENT",
    "DAEMON",
    "RESTARTS",
    "DATAPATH",
    "VERSION",
    "REPORTED",
    "PENDING DELETES",
    "REFUSED",
    "LAST ERROR",
)
_POD_HEADER = ("PENDING POD", "NODE", "AGE", "REASON", "MESSAGE")


def show_cluster_status(arguments: argparse.Namespace) -> Output:
    """Returns the state of a kubeconfig's cluster; the exit status is 1 if something is wrong.

    Raises ContrailctlError.
    """
    status = asyncio.run(read_status(arguments))
    return Output("\n".join(status_lines(status, now=datetime.now(UTC))), status, 1 if status.problems else 0)


async def read_status(arguments: argparse.Namespace) -> ClusterStatus:
    """Reads the cluster and returns its state. Raises ContrailctlError."""
    async with Progress() as progress, connected(arguments) as client:
        objects = await read_cluster(client, arguments.namespace, progress)
    return cluster_status(objects, now=datetime.now(UTC))


def status_lines(status: ClusterStatus, *, now: datetime) -> Iterator[str]:
    """Yields the state as text."""
    yield f"Leader: {status.leader if status.is_leading else 'none'}"
    if status.managers:
        rows = [(each.name, each.node, each.state, str(each.restarts), each.version) for each in status.managers]
        yield from ("", format_table(_MANAGER_HEADER, rows))
    if status.nodes:
        yield from ("", format_table(_NODE_HEADER, [_node_row(each, now) for each in status.nodes]))
    if status.pending:
        pods = [
            (f"{each.namespace}/{each.name}", each.node, _age(each.since, now), each.reason, each.message)
            for each in status.pending
        ]
        yield from ("", format_table(_POD_HEADER, pods))
    if status.problems:
        yield from ("", "Problems:", *(f"  {printable(problem)}" for problem in status.problems))
    yield from ("", _summary(status))


def _node_row(node: NodeStatus, now: datetime) -> tuple[str, ...]:
    return (
        node.name,
        node.agent,
        node.daemon,
        str(node.restarts),
        node.datapath,
        node.version,
        f"{_age(node.reported, now)} ago" if node.reported else "",
        "" if node.pending_deletes is None else str(node.pending_deletes),
        "" if node.reported is None else str(len(node.refused)),
        node.last_errors[0] if node.last_errors else "",
    )


def _age(since: datetime | None, now: datetime) -> str:
    return format_age((now - since).total_seconds()) if since else ""


def _summary(status: ClusterStatus) -> str:
    pending = len(status.pending) + status.other_pending
    problems = len(status.problems)
    found = counted(problems, "problem") if problems else "no problem found"
    return f"{counted(len(status.nodes), 'node')}, {counted(pending, 'pending pod')}: {found}"
