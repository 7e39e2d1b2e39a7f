"""From what the server tells of an object to the manager's own."""

import functools
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.resource import KubeObject, Resource
from contrail_config.objects import static_pod_uuid
from manager.kubernetes.wire import (
    NadObject,
    NamespaceObject,
    PodAnnotations,
    PodObject,
    PodStatus,
)
from manager.source import Nad, Namespace, Pod, Problem, holds_nothing

UNREADABLE = "ObjectUnreadable"
"""Reason of events on objects that are not what their kind says they are."""

T = TypeVar("T", bound=KubeObject)


def make_pod(pod: PodObject) -> Pod:
    """The pod, which has a node."""
    annotations = pod.metadata.annotations or PodAnnotations()
    return Pod(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=identity(pod),
        node=pod.spec.node_name,
        annotations=_texts(annotations),
        host_network=pod.spec.host_network,
        gone=_is_gone(pod.status),
        config_hash=annotations.mirror or annotations.config_hash,
    )


def identity(pod: PodObject) -> str:
    """What tells the pod from others, over its whole life: its uid, but for mirrors of static pods.

    A mirror that somebody deletes is made again by kubelet, with another uid, while its pod runs on.
    """
    metadata = pod.metadata
    if metadata.annotations is None or not metadata.annotations.mirror:
        return metadata.uid
    return static_pod_uuid(metadata.namespace, metadata.name, metadata.annotations.mirror)


def make_nad(nad: NadObject) -> Nad:
    """The NAD; a configuration that is no text is taken as its JSON text, and judged by who reads that."""
    return Nad(
        namespace=nad.metadata.namespace,
        name=nad.metadata.name,
        uid=nad.metadata.uid,
        annotations=_texts(nad.metadata.annotations),
        config=_configuration(nad.spec),
    )


def make_namespace(namespace: NamespaceObject) -> Namespace:
    """The namespace."""
    return Namespace(name=namespace.metadata.name, annotations=_texts(namespace.metadata.annotations))


def make_problem(resource: Resource[T], found: UndecodableObject) -> Problem:
    """What is wrong with an object of this kind."""
    metadata = found.metadata
    return Problem(resource.kind, metadata.namespace, metadata.name, metadata.uid, UNREADABLE, found.problem)


def _texts(annotations: msgspec.Struct | None) -> Mapping[str, str]:
    """The annotations that are there, by their keys."""
    if annotations is None:
        return {}
    found = ((key, getattr(annotations, name)) for name, key in _names(type(annotations)))
    return {key: value for key, value in found if isinstance(value, str)}


@functools.cache
def _names(annotations: type[msgspec.Struct]) -> list[tuple[str, str]]:
    """Each annotation's name in the struct, and its key."""
    return [(field.name, field.encode_name) for field in msgspec.structs.fields(annotations)]


def _configuration(spec: Any) -> str | None:
    value = spec.get("config") if isinstance(spec, dict) else spec
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def _is_gone(status: PodStatus) -> bool:
    conditions = ((condition.type, condition.status) for condition in status.conditions or ())
    return holds_nothing(status.phase, conditions)
