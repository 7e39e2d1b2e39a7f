"""From a document of a known kind to the manager's own object, typed (`wire`), with the key's path in every error."""

from typing import Any, NamedTuple, TypeVar

import msgspec

from manager.manifests.annotations import annotation_texts
from manager.manifests.errors import UnusableError
from manager.manifests.wire import NadObject, NamespaceObject, PodObject, PodStatus
from manager.source import Nad, Namespace, Pod, holds_nothing

_CONFIG_HASH = "kubernetes.io/config.hash"

T = TypeVar("T")


class Identity(NamedTuple):
    """Which object it is, and the node where a pod runs that names none."""

    namespace: str
    name: str
    node: str


def convert(document: Any, wire: type[T]) -> T:
    """The document as `wire`. Raises UnusableError with the key's path first."""
    try:
        return msgspec.convert(document, wire)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$.")
        raise UnusableError(f"{path.rstrip('`')}: {what}" if path else what) from error


def make_pod(identity: Identity, document: Any) -> Pod:
    """Raises UnusableError, BadValueError."""
    pod = convert(document, PodObject)
    annotations = annotation_texts(pod.metadata.annotations)
    return Pod(
        namespace=identity.namespace,
        name=identity.name,
        uid=pod.metadata.uid or "",
        node=(pod.spec and pod.spec.node_name) or identity.node,
        annotations=annotations,
        host_network=bool(pod.spec and pod.spec.host_network),
        gone=pod.status is not None and _is_gone(pod.status),
        config_hash=annotations.get(_CONFIG_HASH),
    )


def make_nad(identity: Identity, document: Any) -> Nad:
    """Raises UnusableError, BadValueError."""
    nad = convert(document, NadObject)
    return Nad(
        namespace=identity.namespace,
        name=identity.name,
        uid=nad.metadata.uid or "",
        annotations=annotation_texts(nad.metadata.annotations),
        config=None if nad.spec is None else nad.spec.config,
    )


def make_namespace(identity: Identity, document: Any) -> Namespace:
    """Raises UnusableError, BadValueError."""
    annotations = convert(document, NamespaceObject).metadata.annotations
    return Namespace(name=identity.name, annotations=annotation_texts(annotations))


def _is_gone(status: PodStatus) -> bool:
    conditions = ((condition.type, condition.status) for condition in status.conditions or ())
    return holds_nothing(status.phase or "", conditions)
