"""Decoding of pods, NADs and namespaces into the manager's own objects, for both sources.

The sources differ in how they read metadata. The API server's objects keep only the annotations that matter, since a
hundred thousand pods are cached; the annotations of a manifest may be lists and booleans, and its errors name the key.
Spec and status are the same in both and are defined here.
"""

import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from manager.source import Nad, Namespace, Pod

CONFIG_HASH_KEY = "kubernetes.io/config.hash"
"""Annotation of a static pod: the hash of its manifest."""


class _Wire(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Keys without a value count as absent, as in Kubernetes. Immutable, so never part of a reference cycle."""


class _OpenEnum(StrEnum):
    """Known texts are members, all others are one member: unknown texts cost no memory per object."""

    @classmethod
    def _missing_(cls, _value: object) -> "_OpenEnum":
        return cls("")


class ConditionType(_OpenEnum):
    """Type of a pod condition; `SANDBOX` says whether the pod has its sandbox."""

    SANDBOX = "PodReadyToStartContainers"
    OTHER = ""


class ConditionStatus(_OpenEnum):
    """Status of a condition; OTHER is unknown."""

    TRUE = "True"
    FALSE = "False"
    OTHER = ""


class Phase(_OpenEnum):
    """Phase of a pod: ended, or not."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    OTHER = ""


class PodSpec(_Wire, frozen=True):
    """Node of a pod, and whether it shares the node's network namespace."""

    node_name: str | None = None
    host_network: bool | None = None


class PodCondition(_Wire, frozen=True):
    """One condition of a pod."""

    type: ConditionType | None = None
    status: ConditionStatus | None = None


class ContainerStatus(_Wire, frozen=True):
    """Status of a container, of which only its presence matters."""


_STARTED: Final = (ContainerStatus(),)
"""Statuses of the containers of any pod that has some. Pods share the object: what it contains does not matter."""


class PodStatus(_Wire, frozen=True):
    """Phase and conditions of a pod, and whether kubelet reported containers of it."""

    phase: Phase | None = None
    conditions: tuple[PodCondition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("container_statuses", "init_container_statuses"):
            if getattr(self, name):
                msgspec.structs.force_setattr(self, name, _STARTED)


class ObjectMetadata(NamedTuple):
    """Metadata of an object as its source resolved them; `uid` is empty if a manifest states none."""

    namespace: str
    name: str
    uid: str
    annotations: Mapping[str, str]


def make_pod(
    metadata: ObjectMetadata,
    spec: PodSpec | None,
    status: PodStatus | None,
    *,
    config_hash: str | None,
    default_node: str = "",
) -> Pod:
    """Returns the pod; `default_node` is the node of a pod that names none."""
    spec = spec or PodSpec()
    return Pod(
        namespace=sys.intern(metadata.namespace),  # few namespaces and nodes, many pods
        name=metadata.name,
        uid=metadata.uid,
        node=sys.intern(spec.node_name or default_node),
        annotations=metadata.annotations,
        host_network=bool(spec.host_network),
        gone=status is not None and _holds_nothing(status),
        rejected=status is not None and _is_rejected(status),
        config_hash=config_hash,
    )


def make_nad(metadata: ObjectMetadata, config: str | None) -> Nad:
    """Returns the NAD."""
    return Nad(metadata.namespace, metadata.name, metadata.uid, metadata.annotations, config)


def make_namespace(metadata: ObjectMetadata) -> Namespace:
    """Returns the namespace."""
    return Namespace(metadata.name, metadata.annotations)


def _is_rejected(status: PodStatus) -> bool:
    """Whether kubelet rejected the pod, so that it will not start.

    kubelet's `rejectPod` reports the phase, a reason (`NodeAffinity`, `OutOfcpu`, ...) and nothing else. A pod that was
    started has container statuses and, since Kubernetes 1.29, the condition of its sandbox; both stay when it ends or
    is evicted. A restarted kubelet may also reject a pod that it started before (kubernetes/kubernetes#123980),
    replaces its status, and removes its sandbox later. So this is no proof that there is no sandbox.
    """
    conditions = status.conditions or ()
    return (
        status.phase is Phase.FAILED
        and not status.container_statuses
        and not status.init_container_statuses
        and all(condition.type is not ConditionType.SANDBOX for condition in conditions)
    )


def _holds_nothing(status: PodStatus) -> bool:
    """Whether the pod ended and its sandbox was removed: until then the sandbox still has the interfaces."""
    ended = status.phase in (Phase.SUCCEEDED, Phase.FAILED)
    return ended and PodCondition(ConditionType.SANDBOX, ConditionStatus.FALSE) in (status.conditions or ())
