"""Decodes a document of a known kind into the manager's own object; errors name the path of the key.

Kubernetes accepts only strings as annotation values. The multi-network design's own examples write `['10.1.1.0/24']`
and `False` in YAML, so lists of strings, booleans and numbers are accepted too and stand for their JSON text.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from manager import decoding
from manager.decoding import CONFIG_HASH_KEY, ObjectMetadata
from manager.manifests.errors import InvalidManifestError
from manager.manifests.wire import ManifestMetadata, NadObject, NamespaceObject, PodObject
from manager.parsing.errors import BadValueError
from manager.parsing.quoting import quoted
from manager.source import Nad, Namespace, Pod

T = TypeVar("T")


class ObjectName(NamedTuple):
    """Namespace and name of an object; `node` is the node of a pod that names none."""

    namespace: str
    name: str
    node: str


def convert(document: Any, wire: type[T]) -> T:
    """Returns the document as `wire`. Raises InvalidManifestError with the key's path first."""
    try:
        return msgspec.convert(document, wire)
    except msgspec.ValidationError as error:
        # msgspec appends the path: "Expected `str`, got `int` - at `$.metadata.uid`".
        problem, _, path = str(error).partition(" - at `$.")
        raise InvalidManifestError(f"{path.rstrip('`')}: {problem}" if path else problem) from error


def make_pod(object_name: ObjectName, document: Any) -> Pod:
    """Returns the pod. Raises InvalidManifestError, BadValueError."""
    pod = convert(document, PodObject)
    metadata = _resolve(object_name, pod.metadata)
    config_hash = metadata.annotations.get(CONFIG_HASH_KEY)
    return decoding.make_pod(metadata, pod.spec, pod.status, config_hash=config_hash, default_node=object_name.node)


def make_nad(object_name: ObjectName, document: Any) -> Nad:
    """Returns the NAD. Raises InvalidManifestError, BadValueError."""
    nad = convert(document, NadObject)
    return decoding.make_nad(_resolve(object_name, nad.metadata), None if nad.spec is None else nad.spec.config)


def make_namespace(object_name: ObjectName, document: Any) -> Namespace:
    """Returns the namespace. Raises InvalidManifestError, BadValueError."""
    return decoding.make_namespace(_resolve(object_name, convert(document, NamespaceObject).metadata))


def _resolve(object_name: ObjectName, metadata: ManifestMetadata) -> ObjectMetadata:
    """Raises BadValueError."""
    # Values are checked one by one, so that the error names the annotation.
    annotations = annotation_texts(metadata.annotations)
    return ObjectMetadata(object_name.namespace, object_name.name, metadata.uid or "", annotations)


def annotation_texts(annotations: Mapping[str, Any] | None) -> dict[str, str]:
    """Returns the annotations as strings. Raises BadValueError, which names key and value."""
    return {key: _text(key, value) for key, value in (annotations or {}).items()}


def _text(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    # JSON has neither NaN nor Infinity, which json.dumps would write.
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return json.dumps(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return json.dumps(value, ensure_ascii=False)
    raise BadValueError(f"metadata.annotations: {key}: {quoted(value)} is not a string: put it in quotes")
