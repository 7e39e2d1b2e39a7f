"""Moments of a pod's start, from its object and from that of its virtual machine."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeNotFoundError
from contrail_config.kube.resource import Resource
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.kinds import GROUP, NAMESPACE_LABEL, POD_LABEL, VERSION, label_value
from contrail_config.kubernetes.node_buckets import node_bucket
from contrail_config.kubernetes.pods import ContainerStatus, CreatedMetadata, Pod
from contrail_config.kubernetes.validated import VALIDATED_VIRTUAL_MACHINES
from contrail_config.objects import VirtualMachine
from contrail_config.pod_timeline import Moments

_SANDBOX: Final = "PodReadyToStartContainers"
_OVER: Final = ("Succeeded", "Failed")


class _ManagedFields(msgspec.Struct, frozen=True):
    time: datetime | None = None


class _WrittenMetadata(CreatedMetadata, frozen=True, kw_only=True):
    managed_fields: tuple[_ManagedFields, ...] = ()


class _Written(msgspec.Struct, frozen=True):
    metadata: _WrittenMetadata


_WRITTEN: Final = Resource(GROUP, VERSION, "VirtualMachine", "virtualmachines", _Written)


def moments_of(pod: Pod, *, written: datetime | None, now: datetime) -> Moments:
    """Returns the moments of a pod, whose virtual machine was `written` then."""
    init = pod.status.init_container_statuses
    return Moments(
        created=pod.metadata.creation_timestamp or now,
        scheduled=_since(pod, "PodScheduled"),
        written=written,
        sandbox=_since(pod, _SANDBOX),
        initialized=_since(pod, "Initialized") if init else None,
        started=_all_started(pod.status.container_statuses),
        ready=_since(pod, "Ready"),
        is_over=pod.status.phase in _OVER,
    )


async def find_virtual_machine(client: KubeClient, pod: Pod) -> VirtualMachine | None:
    """Returns the virtual machine of a pod, None if there is none, or if another store has it. Raises KubeError."""
    if not pod.spec.node_name:
        return None
    bucket = node_bucket(pod.spec.node_name)
    names = {NAMESPACE_LABEL: pod.metadata.namespace, POD_LABEL: label_value(pod.metadata.name)}
    by_uid = Selector(namespace=bucket, fields=f"metadata.name={pod.metadata.uid}")
    by_name = Selector(namespace=bucket, labels=",".join(f"{key}={value}" for key, value in names.items()))
    # By uid the server finds one object without a look at the others; a static pod's has another name.
    for selector in (by_uid, by_name):
        try:
            found = await client.list_each(VALIDATED_VIRTUAL_MACHINES, selector)
        except KubeNotFoundError:
            return None
        known = (each.spec for each in found if not isinstance(each, UndecodableObject) and each.is_trusted)
        machine = next((each for each in known if _is_of(each, pod)), None)
        if machine is not None:
            return machine
    return None


def _is_of(machine: VirtualMachine, pod: Pod) -> bool:
    """Whether it is the pod's, and not that of an earlier pod with its name. Static pods have another uuid."""
    is_current = machine.uuid == pod.metadata.uid or machine.config_hash is not None
    return is_current and (machine.namespace, machine.pod) == (pod.metadata.namespace, pod.metadata.name)


def lacks_sandbox(pod: Pod) -> bool:
    """Whether a pod that needs one has no sandbox with addresses yet."""
    has_sandbox = pod.status.pod_ip or pod.condition(_SANDBOX)
    return not pod.spec.host_network and not has_sandbox


async def written_at(client: KubeClient, pod: Pod, machine: VirtualMachine | None) -> datetime | None:
    """Returns when the interface list that the pod started with was written, None if that is not known.

    An object that says why there is no list is replaced by the list, so the last write before the sandbox counts.
    """
    if machine is None or machine.pending is not None:
        return None
    try:
        found = await client.get(_WRITTEN, machine.uuid, namespace=node_bucket(machine.node))
    except KubeNotFoundError:
        return None
    sandbox = pod.condition(_SANDBOX)
    until = sandbox.last_transition_time if sandbox else None
    times = (found.metadata.creation_timestamp, *(each.time for each in found.metadata.managed_fields))
    return max((time for time in times if time and (until is None or time <= until)), default=None)


def _since(pod: Pod, kind: str) -> datetime | None:
    condition = pod.condition(kind)
    return condition.last_transition_time if condition else None


def _all_started(containers: Sequence[ContainerStatus]) -> datetime | None:
    """Returns when the last container was started, None if one was not. Of a restarted one, its last start."""
    times = [_started(each) for each in containers]
    known = [each for each in times if each is not None]
    return max(known) if known and len(known) == len(times) else None


def _started(container: ContainerStatus) -> datetime | None:
    state = container.state
    if state.running is not None:
        return state.running.started_at
    return state.terminated.started_at if state.terminated is not None else None
