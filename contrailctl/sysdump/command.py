"""`contrailctl sysdump`: collects everything that a bug report needs of a cluster."""

import argparse
import asyncio
import importlib.metadata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeError
from contrail_config.kubernetes.pods import Pod
from contrailctl.cluster.command import status_lines
from contrailctl.cluster.reading import ClusterObjects, read_cluster
from contrailctl.cluster.status import ClusterStatus, cluster_status
from contrailctl.errors import NotFoundError
from contrailctl.kubeconfig import connected, kubectl_options
from contrailctl.output import Output
from contrailctl.progress import Progress
from contrailctl.sysdump.archive import DumpFolder, check_target, dump_folder, pack
from contrailctl.sysdump.logs import dump_logs
from contrailctl.sysdump.nodes import dump_nodes
from contrailctl.sysdump.objects import dump_objects
from contrailctl.sysdump.redaction import redacted_text
from contrailctl.table import counted, printable

_README = """Made by contrailctl {version} at {time}.

status.txt, status.json   what contrailctl status shows
objects/                  objects of the API server, one per line
logs/                     last lines of each container of managers and node pods
nodes/                    what agent and daemon serve about themselves, and what contrailctl check node finds
problems.txt              what could not be collected

Left out: Secrets; specs, labels and most annotations of tenants' pods. Replaced by <redacted>: values of environment
variables, and what looks like a password, token or key. Names of pods, networks and nodes, and addresses, are in it:
look through it before you publish it.
"""


class Dump(msgspec.Struct, frozen=True):
    """The archive, and what could not be collected."""

    file: str
    files: int
    bytes: int
    problems: tuple[str, ...]


def make_sysdump(arguments: argparse.Namespace) -> Output:
    """Creates the archive. Raises ContrailctlError if it cannot be created, or nothing can be read."""
    now = datetime.now(UTC)
    target = Path(arguments.file or f"contrail-sysdump-{now:%Y%m%dT%H%M%SZ}.tar.gz")
    check_target(target)
    with dump_folder() as folder:
        asyncio.run(_collect(arguments, folder, now))
        folder.write("problems.txt", "".join(f"{problem}\n" for problem in folder.problems))
        dump = Dump(str(target), folder.count(), pack(folder, target), tuple(folder.problems))
    lines = [f"{dump.file}: {dump.files} files, {dump.bytes / 1024:.0f} KiB"]
    lines += [f"Not collected: {printable(problem)}" for problem in dump.problems]
    return Output("\n".join(lines), dump)


async def _collect(arguments: argparse.Namespace, folder: DumpFolder, now: datetime) -> None:
    version = importlib.metadata.version("contrail-multinet")
    folder.write("README.txt", _README.format(version=version, time=f"{now:%Y-%m-%dT%H:%M:%SZ}"))
    async with Progress() as progress, connected(arguments) as client:
        cluster = await _dump_status(client, arguments, folder, progress)
        progress.stage("reading objects")
        await dump_objects(client, arguments.namespace, folder)
        if cluster is None:
            return
        objects, status = cluster
        nodes = selected_nodes(status, objects.agents, arguments.nodes, limit=arguments.max_nodes)
        if len(nodes) < len(objects.agents) and not arguments.nodes:
            folder.problems.append(f"nodes: {len(nodes)} of {len(objects.agents)}: see --node and --max-nodes")
        progress.stage("reading logs")
        await dump_logs(client, [*objects.managers, *nodes.values()], folder)
        progress.stage(f"running commands on {counted(len(nodes), 'node')}")
        await dump_nodes(nodes, folder, kubectl=kubectl_options(arguments), limit=arguments.timeout)


async def _dump_status(
    client: KubeClient, arguments: argparse.Namespace, folder: DumpFolder, progress: Progress
) -> tuple[ClusterObjects, ClusterStatus] | None:
    """Writes the status of the cluster and returns it; None, with a problem, if the client may not read all of it."""
    try:
        objects = await read_cluster(client, arguments.namespace, progress)
    except KubeError as error:
        if not error.status:
            raise  # the server cannot be reached: nothing else could be read
        folder.problems.append(f"status, logs, nodes: {error}")
        return None
    now = datetime.now(UTC)
    status = cluster_status(objects, now=now)
    folder.write("status.txt", redacted_text("\n".join(status_lines(status, now=now)) + "\n"))
    folder.write("status.json", redacted_text(msgspec.json.format(msgspec.json.encode(status), indent=2).decode()))
    return objects, status


def selected_nodes(
    status: ClusterStatus, pods: Mapping[str, Pod], wanted: Sequence[str] | None, *, limit: int
) -> dict[str, Pod]:
    """Returns the contrail-node pods to look at: those that are named, else those with problems first.

    Raises NotFoundError.
    """
    if wanted:
        for node in wanted:
            if node not in pods:
                raise NotFoundError(f"node {node}: no contrail-node pod")
        return {node: pods[node] for node in wanted}
    has_problem = {node for node in pods if any(each.startswith(f"node {node}: ") for each in status.problems)}
    waiting = {pod.node for pod in status.pending}
    ordered = sorted(pods, key=lambda node: (node not in has_problem, node not in waiting, node))
    return {node: pods[node] for node in ordered[:limit]}
