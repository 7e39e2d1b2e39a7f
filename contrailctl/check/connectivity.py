"""`contrailctl check connectivity`: the networks of the whole cluster, from the store and from the kernel of each node.

The store changes while it is read, so what is found in it counts only if a second reading finds it, too. With --live
temporary pods reach each other at the end, when the rest has been checked without them.
"""

import argparse
import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.resource import Metadata, Resource
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.expected_slices import StoredObjects, read_objects
from contrailctl.check.findings import Checked, Fault, Finding, output_of
from contrailctl.check.live.check import LivePlan, check_live
from contrailctl.check.live.options import LiveOptions, live_options, places_of, selected_networks
from contrailctl.check.node_agent import INDEX_0_NAME
from contrailctl.check.node_commands import CNID_CONTAINER, check_nodes, command_of, kubectl_command
from contrailctl.check.store import store_findings
from contrailctl.check.tunnel_damage import stops_packets
from contrailctl.errors import NotFoundError, UsageError
from contrailctl.kubeconfig import connected, kubectl_options
from contrailctl.output import Output
from contrailctl.progress import Progress
from contrailctl.table import counted

NODE_TIMEOUT = 60.0
"""Seconds for one node: three looks at its kernel, and probes of the way to others."""

_SECOND_READING = 3.0  # seconds after the first one
_NO_POD = "see why the DaemonSet has no pod there, or name its --namespace or a --node-command"
_NODE_PODS = "app.kubernetes.io/name=contrail-node"


class _Container(msgspec.Struct, frozen=True):
    name: str
    image: str = ""


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    containers: tuple[_Container, ...] = ()


class _Pod(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _PodSpec = _PodSpec()

    @property
    def image(self) -> str:
        """That of the daemon."""
        return next((each.image for each in self.spec.containers if each.name == CNID_CONTAINER), "")


_PODS = Resource("", "v1", "Pod", "pods", _Pod)


def check_connectivity(arguments: argparse.Namespace) -> Output:
    """Checks the cluster of a kubeconfig. Raises ContrailctlError."""
    return output_of(asyncio.run(_checked(arguments)))


async def _checked(arguments: argparse.Namespace) -> Checked:
    options = live_options(arguments)
    async with Progress() as progress, connected(arguments) as client:
        progress.stage("reading the store")
        stored, findings = await _check_store(client)
        nodes = tuple(sorted(_selected(stored, arguments.nodes)))
        pods = await _pods(client, arguments.namespace) if _needs_pods(arguments) else {}
        live = None if options is None else _live_plan(arguments, options, stored, nodes, pods)
        progress.stage(f"checking {counted(len(nodes), 'node')}")
        checked = await _check_nodes(arguments, stored, nodes, pods, findings)
        if live is None:
            return checked
        progress.stage(f"checking with {counted(len(live.places), 'temporary pod')}")
        return await _with_live(checked, client, live, arguments.timeout)


async def _check_nodes(
    arguments: argparse.Namespace,
    stored: StoredObjects,
    nodes: tuple[str, ...],
    pods: Mapping[str, _Pod],
    findings: Iterable[Finding],
) -> Checked:
    """Checks the kernels of the nodes; returns what is found in them and in the store."""
    commands = _commands(arguments, nodes, pods)
    checked = await check_nodes(commands, limit=arguments.timeout or NODE_TIMEOUT)
    # A refused network is known in the store and on the node: one finding is enough.
    found = {each for each in findings if not arguments.nodes or each.node in ("", *nodes)}
    found.update(each for one in checked for each in one.findings)
    found = without_consequences(found, stored.tunnels)
    notes = [note for one in checked for note in one.notes]
    if arguments.store_only:
        notes.append("the kernels of nodes")
    else:
        found.update(_without_pod(node, arguments.namespace) for node in nodes if node not in commands)
    return Checked(nodes, len(stored.networks), tuple(sorted(found)), tuple(notes))


async def _with_live(checked: Checked, client: KubeClient, plan: LivePlan, limit: float | None) -> Checked:
    result = await check_live(client, plan, limit=limit)
    return msgspec.structs.replace(
        checked,
        findings=tuple(sorted((*checked.findings, *result.findings))),
        notes=(*checked.notes, *result.notes),
        probes=result.probes,
    )


def _live_plan(
    arguments: argparse.Namespace,
    options: LiveOptions,
    stored: StoredObjects,
    nodes: Iterable[str],
    pods: Mapping[str, _Pod],
) -> LivePlan:
    """Returns what the live check creates, on nodes that exist. Raises NotFoundError, UsageError."""
    networks = selected_networks(stored, options.networks)
    places = places_of([node for node in nodes if node in stored.tunnels], networks, max_pods=options.max_pods)
    known = options.image or next((pod.image for pod in pods.values()), "")
    if not known:
        message = f"--live: no contrail-node pod in namespace {arguments.namespace}: name its --namespace or an --image"
        raise UsageError(message)
    images = {node: options.image or (pods[node].image if node in pods else "") or known for node, _ in places}
    return LivePlan(places, networks, images, options.namespace, options.outside, kubectl_options(arguments))


def without_consequences(findings: set[Finding], tunnels: Mapping[str, Sequence[str]]) -> set[Finding]:
    """Leaves out tunnels that answer nothing since the kernel of the node at their other end is damaged."""
    node_of = {address: node for node, addresses in tunnels.items() for address in addresses}

    def is_consequence(blocked: Finding) -> bool:
        peer, own = node_of.get(blocked.peer), tunnels.get(blocked.node, ())
        of_peer = (each for each in findings if each.node == peer and each.network == INDEX_0_NAME)
        return any(stops_packets(each.fault, each.what, own) for each in of_peer)

    return {each for each in findings if each.fault is not Fault.BLOCKED or not is_consequence(each)}


async def _check_store(client: KubeClient) -> tuple[StoredObjects, list[Finding]]:
    stored = await read_objects(client)
    findings = store_findings(stored, now=datetime.now(UTC))
    if findings:
        await asyncio.sleep(_SECOND_READING)
        stored = await read_objects(client)
        again = set(store_findings(stored, now=datetime.now(UTC)))
        findings = [each for each in findings if each in again]
    return stored, findings


def _needs_pods(arguments: argparse.Namespace) -> bool:
    """Whether contrail-node pods must be known: to run commands in them, or for their image."""
    runs_in_pods = not arguments.store_only and arguments.node_command is None
    return runs_in_pods or (arguments.live and not arguments.image)


def _commands(
    arguments: argparse.Namespace, nodes: Iterable[str], pods: Mapping[str, _Pod]
) -> dict[str, Sequence[str]]:
    """Returns the command for each node that can be checked."""
    if arguments.store_only:
        return {}
    if arguments.node_command is not None:
        return {node: command_of(arguments.node_command, node, probes=arguments.probes) for node in nodes}
    names = {node: pods[node].metadata.name for node in nodes if node in pods}
    client = kubectl_options(arguments)
    return {
        node: kubectl_command(node, pod, arguments.namespace, probes=arguments.probes, client=client)
        for node, pod in names.items()
    }


def _without_pod(node: str, namespace: str) -> Finding:
    found = f"no contrail-node pod in namespace {namespace}"
    return Finding(node, "", Fault.UNCHECKED, "kernel of the node", found, advice=_NO_POD)


async def _pods(client: KubeClient, namespace: str) -> dict[str, _Pod]:
    """Returns the contrail-node pods by node."""
    pods = await client.list_all(_PODS, Selector(namespace=namespace, labels=_NODE_PODS))
    return {pod.spec.node_name: pod for pod in pods if pod.spec.node_name}


def _selected(stored: StoredObjects, wanted: Sequence[str] | None) -> set[str]:
    """Returns the nodes to check: those with a virtual machine, a block or a report; raises NotFoundError."""
    known = stored.used_nodes | stored.reports.keys()
    if wanted is None:
        return known
    unknown = sorted(set(wanted) - known - stored.tunnels.keys())
    if unknown:
        raise NotFoundError(f"node {unknown[0]} not found")
    return set(wanted)
