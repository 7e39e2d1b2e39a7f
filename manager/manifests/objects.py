"""From a document of a known kind to the manager's own object, typed (`wire`), with the key's path in every error."""

from typing import Any, NamedTuple, TypeVar

import msgspec

from manager import decoding
from manager.decoding import CONFIG_HASH_KEY, ObjectMetadata
from manager.manifests.annotations import annotation_texts
from manager.manifests.errors import InvalidManifestError
from manager.manifests.wire import Metadata, NadObject, NamespaceObject, PodObject
from manager.source import Nad, Namespace, Pod

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
        raise InvalidManifestError(f"{path.rstrip('`')}: {what}" if path else what) from error


def make_pod(identity: Identity, document: Any) -> Pod:
    """Raises UnusableError, BadValueError."""
    pod = convert(document, PodObject)
    metadata = _resolve(identity, pod.metadata)
    config_hash = metadata.annotations.get(CONFIG_HASH_KEY)
    return decoding.make_pod(metadata, pod.spec, pod.status, config_hash=config_hash, default_node=identity.node)


def make_nad(identity: Identity, document: Any) -> Nad:
    """Raises UnusableError, BadValueError."""
    nad = convert(document, NadObject)
    return decoding.make_nad(_resolve(identity, nad.metadata), None if nad.spec is None else nad.spec.config)


def make_namespace(identity: Identity, document: Any) -> Namespace:
    """Raises UnusableError, BadValueError."""
    return decoding.make_namespace(_resolve(identity, convert(document, NamespaceObject).metadata))


def _resolve(identity: Identity, metadata: Metadata) -> ObjectMetadata:
    """Raises BadValueError."""
    annotations = annotation_texts(metadata.annotations)
    return ObjectMetadata(identity.namespace, identity.name, metadata.uid or "", annotations)
