"""Conversion of the API server's objects (`wire`) into the manager's own."""

import functools
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.resource import KubeObject, Metadata, Resource
from contrail_config.objects import static_pod_uuid
from manager import decoding
from manager.decoding import ObjectMetadata
from manager.kubernetes.wire import NadObject, NamespaceObject, PodAnnotations, PodObject
from manager.source import Nad, Namespace, Pod, Problem

UNREADABLE = "ObjectUnreadable"
"""Event reason: the object does not match its kind's schema."""

_MAX_CONFIG_HASH: Final = 253
"""Characters, as the definition of virtual machines has it; kubelet's hashes have 32."""

_MAX_SHARED: Final = 1024
"""Characters of annotations that are shared: what tenants write must not fill the cache."""

_NESTED_TOO_DEEPLY: Final = "nested too deeply"

T = TypeVar("T", bound=KubeObject)


def make_pod(pod: PodObject) -> Pod:
    """Returns the pod; its `uid` is its identity over its whole life, see `identity`."""
    annotations = pod.metadata.annotations or PodAnnotations()
    metadata = _resolve(pod.metadata, annotations)._replace(uid=identity(pod))
    return decoding.make_pod(metadata, pod.spec, pod.status, config_hash=_config_hash(annotations))


def identity(pod: PodObject) -> str:
    """Returns the uid of the pod, or for a mirror pod a uuid derived from its name and manifest.

    kubelet recreates a deleted mirror pod with another uid while the static pod runs on.
    """
    metadata = pod.metadata
    if metadata.annotations is None or not metadata.annotations.mirror:
        return metadata.uid
    return static_pod_uuid(metadata.namespace, metadata.name, metadata.annotations.mirror)


def make_nad(nad: NadObject) -> Nad:
    """Returns the NAD; a `config` that is not a string becomes its JSON text, which the parser of NADs validates."""
    return decoding.make_nad(_resolve(nad.metadata, nad.metadata.annotations), _config_text(nad.spec))


def make_namespace(namespace: NamespaceObject) -> Namespace:
    """Returns the namespace."""
    return decoding.make_namespace(_resolve(namespace.metadata, namespace.metadata.annotations))


def make_problem(resource: Resource[T], found: UndecodableObject) -> Problem:
    """Returns the problem of an object that cannot be decoded."""
    metadata = found.metadata
    return Problem(resource.kind, metadata.namespace, metadata.name, metadata.uid, UNREADABLE, found.problem)


def _config_hash(annotations: PodAnnotations) -> str | None:
    """Returns the hash of a static pod's manifest. Anybody may annotate a pod: what is too long is none."""
    text = annotations.mirror or annotations.config_hash or ""
    return text if 0 < len(text) <= _MAX_CONFIG_HASH else None


def _resolve(metadata: Metadata, annotations: msgspec.Struct | None) -> ObjectMetadata:
    return ObjectMetadata(metadata.namespace, metadata.name, metadata.uid, _texts(annotations))


def _texts(annotations: msgspec.Struct | None) -> Mapping[str, str]:
    """Returns the annotations that are set, by key."""
    if annotations is None:
        return {}
    found = ((key, getattr(annotations, name)) for name, key in _names(type(annotations)))
    texts = tuple((key, value) for key, value in found if isinstance(value, str))
    if sum(len(value) for _, value in texts) > _MAX_SHARED:
        return dict(texts)
    return _shared(texts)


@functools.lru_cache(maxsize=1024)
def _shared(texts: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Returns one mapping for the many pods that have the same annotations, such as those of a Deployment."""
    return dict(texts)


@functools.cache
def _names(annotations: type[msgspec.Struct]) -> list[tuple[str, str]]:
    """Returns the field name and the key of each annotation."""
    return [(field.name, field.encode_name) for field in msgspec.structs.fields(annotations)]


def _config_text(spec: Any) -> str | None:
    # CRDs of others may admit any type here.
    value = spec.get("config") if isinstance(spec, dict) else spec
    if value is None or isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:  # decoded just below the limit of the nesting: the parser reports what is no JSON
        return _NESTED_TOO_DEEPLY
