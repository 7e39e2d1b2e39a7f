"""The last ADDs of a pod from the daemon of its node: by `kubectl exec` in its pod, or by a command of the operator.

The daemon serves them on its node only, so the operator's own right to run a command there is what is needed.
"""

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from contrail_config.kube.client import KubeClient
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.pods import PODS, Pod
from contrail_config.pod_timeline import EndedAdd
from contrailctl.adds import Adds
from contrailctl.check.commands import CommandError, answer_of, kubectl_exec
from contrailctl.cluster.objects import DAEMON_CONTAINER, NODE_PODS
from contrailctl.kubeconfig import kubectl_options

_TIMEOUT = 20.0  # seconds


class NodeAdds(NamedTuple):
    """The ADDs, and why there may be more: empty if the daemon was asked."""

    adds: Sequence[EndedAdd]
    note: str = ""


async def read_adds(client: KubeClient, pod: Pod, arguments: argparse.Namespace) -> NodeAdds:
    """Returns the ADDs of the pod; what prevents that is a note. Raises KubeError."""
    node = pod.spec.node_name
    if not node or pod.spec.host_network:
        return NodeAdds((), "the pod uses the network of its node" if pod.spec.host_network else "it has no node")
    command = await _command(client, node, arguments)
    if not command:
        return NodeAdds((), f"no contrail-node pod on {node} in namespace {arguments.namespace}: see --node-command")
    meta = pod.metadata
    words = ["get", "adds", "--namespace", meta.namespace, meta.name, "--output", "json"]
    try:
        answer = await answer_of([*command, *words], Adds, limit=arguments.timeout or _TIMEOUT)
    except CommandError as error:
        return NodeAdds((), f"{node}: {error}")
    # A mirror pod has another uid than its static pod, which the runtime passes.
    adds = [each for each in answer.items if each.uid in ("", meta.uid) or _is_mirror(pod)]
    if not adds:
        return NodeAdds((), f"the daemon of {node} knows none: none has ended since it began, or that is too long ago")
    return NodeAdds(adds)


async def _command(client: KubeClient, node: str, arguments: argparse.Namespace) -> list[str]:
    """Returns the beginning of a command that runs contrailctl on the node, empty if there is none."""
    if arguments.node_command is not None:
        return [word.replace("{node}", node) for word in arguments.node_command]
    selector = Selector(namespace=arguments.namespace, labels=NODE_PODS, fields=f"spec.nodeName={node}")
    pods = await client.list_all(PODS, selector)
    if not pods:
        return []
    options = kubectl_options(arguments)
    return [*kubectl_exec(options, arguments.namespace, pods[0].metadata.name, DAEMON_CONTAINER), "contrailctl"]


def _is_mirror(pod: Pod) -> bool:
    return "kubernetes.io/config.mirror" in pod.metadata.annotations
