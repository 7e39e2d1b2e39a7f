"""Pods that have a node but no sandbox yet, and why: the manager's reason, or what their node's runtime says."""

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.pod_moments import find_virtual_machine, lacks_sandbox
from contrail_config.kubernetes.pods import PODS, Pod
from contrail_config.objects import VirtualMachine
from contrailctl.cluster.objects import EVENTS, PodEvent

MAX_EXPLAINED = 100
"""Pods whose reason is looked up, the oldest ones; each takes up to two requests."""

NOT_ASSIGNED = "NotAssigned"
ON_NODE = "OnNode"

_CONCURRENT = 16
_FAILED = "FailedCreatePodSandBox"
_WITH_NODE = "status.phase=Pending,spec.nodeName!="


class PendingPod(msgspec.Struct, frozen=True):
    """A pod without a sandbox; `since` is when it was created."""

    namespace: str
    name: str
    node: str
    since: datetime | None
    reason: str
    message: str


class PendingPods(NamedTuple):
    """The oldest ones with their reasons, and how many others there are."""

    explained: tuple[PendingPod, ...]
    others: int


async def read_pending_pods(client: KubeClient) -> PendingPods:
    """Returns the pending pods, the oldest first. Raises KubeError."""
    items = await client.list_each(PODS, Selector(fields=_WITH_NODE))
    pods = sorted((each for each in items if isinstance(each, Pod) and _is_pending(each)), key=_age)
    slots = asyncio.Semaphore(_CONCURRENT)

    async def explained(pod: Pod) -> PendingPod:
        async with slots:
            return await _explained(client, pod)

    found = await asyncio.gather(*map(explained, pods[:MAX_EXPLAINED]))
    return PendingPods(tuple(found), max(0, len(pods) - MAX_EXPLAINED))


def _is_pending(pod: Pod) -> bool:
    return lacks_sandbox(pod) and pod.metadata.deletion_timestamp is None


def _age(pod: Pod) -> tuple[str, str, str]:
    created = pod.metadata.creation_timestamp
    return (created.isoformat() if created else "", pod.metadata.namespace, pod.metadata.name)


async def _explained(client: KubeClient, pod: Pod) -> PendingPod:
    reason, message = await pending_reason(client, pod, await find_virtual_machine(client, pod))
    meta = pod.metadata
    return PendingPod(meta.namespace, meta.name, pod.spec.node_name, meta.creation_timestamp, reason, message)


async def pending_reason(client: KubeClient, pod: Pod, machine: VirtualMachine | None) -> tuple[str, str]:
    """Returns why a pod has no sandbox, as a word and a message; `machine` is its own. Raises KubeError."""
    if machine is not None and machine.pending is not None:
        return machine.pending.reason, machine.pending.message
    if machine is None:
        return NOT_ASSIGNED, "no manager has assigned interfaces, or said why not"
    fields = f"involvedObject.uid={pod.metadata.uid},reason={_FAILED}"
    failed = await client.list_each(EVENTS, Selector(namespace=pod.metadata.namespace, fields=fields))
    newest = _newest(each for each in failed if isinstance(each, PodEvent))
    if newest is not None:
        return _FAILED, newest.message
    return ON_NODE, "its interfaces are assigned; the node has not started it"


def _newest(events: Iterable[PodEvent]) -> PodEvent | None:
    return max(events, key=lambda event: event.time.isoformat() if event.time else "", default=None)
