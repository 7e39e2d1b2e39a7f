"""`contrailctl check connectivity`: the networks of the whole cluster, from the store and from the kernel of each node.

The store changes while it is read, so what is found in it counts only if a second reading finds it, too.
"""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.errors import KubeConfigurationError, KubeError
from contrail_config.kube.resource import Metadata, Resource
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.expected_slices import StoredObjects, read_objects
from contrailctl.check.findings import Checked, Fault, Finding, output_of
from contrailctl.check.node_agent import INDEX_0_NAME
from contrailctl.check.node_commands import check_nodes, command_of, kubectl_command
from contrailctl.check.store import store_findings
from contrailctl.errors import NotFoundError, ResponseError, UnreachableError, UsageError
from contrailctl.output import Output

NODE_TIMEOUT = 60.0
"""Seconds for one node: three looks at its kernel, and probes of the way to others."""

_REQUEST_TIMEOUT = 30.0
_SECOND_READING = 3.0  # seconds after the first one
_OF_THE_KERNEL = (Fault.MISSING, Fault.STALE, Fault.WRONG)
_NO_POD = "see why the DaemonSet has no pod there, or name its --namespace or a --node-command"
_NODE_PODS = "app.kubernetes.io/name=contrail-node"


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _PodSpec = _PodSpec()


_PODS = Resource("", "v1", "Pod", "pods", _Pod)


def check_connectivity(arguments: argparse.Namespace) -> Output:
    """Checks the cluster of a kubeconfig. Raises ContrailctlError."""
    return output_of(asyncio.run(_checked(arguments)))


async def _checked(arguments: argparse.Namespace) -> Checked:
    try:
        config = await load_client_config(kubeconfig=arguments.kubeconfig, context=arguments.context)
    except KubeConfigurationError as error:
        raise UsageError(str(error)) from error
    try:
        async with connect(config, deadline=arguments.timeout or _REQUEST_TIMEOUT) as client:
            stored, findings = await _check_store(client)
            commands = await _commands(client, arguments, stored)
    except KubeError as error:
        raise _readable(error) from error
    checked = await check_nodes(commands, limit=arguments.timeout or NODE_TIMEOUT)
    nodes = tuple(sorted(_selected(stored, arguments.nodes)))
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


def without_consequences(findings: set[Finding], tunnels: Mapping[str, Sequence[str]]) -> set[Finding]:
    """Leaves out tunnels that answer nothing since the kernel of the node at their other end is damaged."""
    node_of = {address: node for node, addresses in tunnels.items() for address in addresses}
    damaged = {each.node for each in findings if each.network == INDEX_0_NAME and each.fault in _OF_THE_KERNEL}
    return {each for each in findings if each.fault is not Fault.BLOCKED or node_of.get(each.peer) not in damaged}


async def _check_store(client: KubeClient) -> tuple[StoredObjects, list[Finding]]:
    stored = await read_objects(client)
    findings = store_findings(stored, now=datetime.now(UTC))
    if findings:
        await asyncio.sleep(_SECOND_READING)
        stored = await read_objects(client)
        again = set(store_findings(stored, now=datetime.now(UTC)))
        findings = [each for each in findings if each in again]
    return stored, findings


async def _commands(
    client: KubeClient, arguments: argparse.Namespace, stored: StoredObjects
) -> dict[str, Sequence[str]]:
    """Returns the command for each node that can be checked."""
    nodes = sorted(_selected(stored, arguments.nodes))
    if arguments.store_only:
        return {}
    if arguments.node_command is not None:
        return {node: command_of(arguments.node_command, node, probes=arguments.probes) for node in nodes}
    pods = await _pods(client, arguments.namespace)
    options = (("--kubeconfig", arguments.kubeconfig), ("--context", arguments.context))
    kubectl = [part for option in options if option[1] for part in option]
    return {
        node: kubectl_command(node, pods[node], arguments.namespace, probes=arguments.probes, client=kubectl)
        for node in nodes
        if node in pods
    }


def _without_pod(node: str, namespace: str) -> Finding:
    found = f"no contrail-node pod in namespace {namespace}"
    return Finding(node, "", Fault.UNCHECKED, "kernel of the node", found, advice=_NO_POD)


async def _pods(client: KubeClient, namespace: str) -> Mapping[str, str]:
    """Returns the contrail-node pods by node."""
    pods = await client.list_all(_PODS, Selector(namespace=namespace, labels=_NODE_PODS))
    return {pod.spec.node_name: pod.metadata.name for pod in pods if pod.spec.node_name}


def _selected(stored: StoredObjects, wanted: Sequence[str] | None) -> set[str]:
    """Returns the nodes to check: those with a virtual machine, a block or a report; raises NotFoundError."""
    known = stored.used_nodes | stored.reports.keys()
    if wanted is None:
        return known
    unknown = sorted(set(wanted) - known - stored.tunnels.keys())
    if unknown:
        raise NotFoundError(f"node {unknown[0]} not found")
    return set(wanted)


def _readable(error: KubeError) -> UnreachableError | ResponseError:
    return ResponseError(str(error)) if error.status else UnreachableError(str(error))
