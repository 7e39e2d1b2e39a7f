"""Decoder of manifest documents: pods, network attachment definitions and namespaces.

Each object is decoded on its own, so an invalid object does not affect others in the same file. Other kinds (services,
deployments, ...) are ignored.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from manager.manifests.errors import InvalidManifestError
from manager.manifests.objects import ObjectName, convert, make_nad, make_namespace, make_pod
from manager.manifests.problems import ManifestLocation, ManifestReason, ObjectKey, file_problem, object_problem
from manager.manifests.wire import NamedMetadata, NamedObject
from manager.parsing.errors import BadValueError
from manager.parsing.names import namespace_name, object_name, pod_name
from manager.parsing.quoting import quoted
from manager.source import Nad, Namespace, Pod, Problem

_log = logging.getLogger(__name__)

_DEFAULT_NAMESPACE = "default"


class ManifestObject(NamedTuple):
    """An object of a manifest and its location; its `uid` is empty if the manifest has none."""

    key: ObjectKey
    location: ManifestLocation
    object: Pod | Nad | Namespace


class _Kind(NamedTuple):
    """A kind that the manager reads: its API group, its name check, and its decoder."""

    group: str
    validate_name: Callable[[Any], str]
    decode: Callable[[ObjectName, Any], Pod | Nad | Namespace]
    namespaced: bool = True


def decode_document(document: Any, *, path: str, position: int, node: str) -> Iterator[ManifestObject | Problem]:
    """Yields the objects and problems in a document; `node` is the node of pods that name none."""
    location = ManifestLocation(path, position)
    try:
        items = _items(document)
    except InvalidManifestError as error:
        yield _unidentified(location, error)
        return
    # The location names the item only within a list.
    if items is None:
        yield from _decode_object(document, location, node)
        return
    for number, item in enumerate(items, 1):
        yield from _decode_object(item, location._replace(item=number), node)


def _decode_object(document: Any, location: ManifestLocation, node: str) -> Iterator[ManifestObject | Problem]:
    try:
        kind_name, kind = _kind(document)
        if kind is None:
            _log.debug("%s: %s ignored", location, kind_name)
            return
        namespace, name = _identify(document, kind)
    except (InvalidManifestError, BadValueError) as error:
        yield _unidentified(location, error)
        return
    key = (kind_name, namespace, name)
    try:
        yield ManifestObject(key, location, kind.decode(ObjectName(namespace, name, node), document))
    except (InvalidManifestError, BadValueError) as error:
        yield object_problem(key, ManifestReason.INVALID, f"{location}: {error}", path=location.path)


def _unidentified(location: ManifestLocation, error: Exception) -> Problem:
    return file_problem(location.path, ManifestReason.INVALID, f"{location.within_file}: {error}")


def _items(document: Any) -> list[Any] | None:
    """Returns the items of a `kind: List`; None for any other kind. Raises InvalidManifestError."""
    if document is None:
        return []
    if not isinstance(document, dict):
        raise InvalidManifestError(f"{quoted(document)} is not a Kubernetes object")
    if document.get("kind") != "List":
        return None
    items = document.get("items")
    if not isinstance(items, list):
        raise InvalidManifestError(f"items: {quoted(items)} is not a list")
    return items


def _kind(document: Any) -> tuple[str, _Kind | None]:
    """Returns the kind's name, and the kind if the manager reads it. Raises InvalidManifestError.

    `apiVersion` is optional: the multi-network design's own example lacks it.
    """
    if not isinstance(document, dict):
        raise InvalidManifestError(f"{quoted(document)} is not a Kubernetes object")
    name, version = document.get("kind"), document.get("apiVersion", "")
    if not isinstance(name, str) or not name:
        raise InvalidManifestError(f"kind: {quoted(name)} is not a string, so this is not a Kubernetes object")
    if not isinstance(version, str):
        raise InvalidManifestError(f"apiVersion: {quoted(version)} is not a string")
    if name == "List":
        raise InvalidManifestError("kind: a List must not contain a List")
    kind = _KINDS.get(name)
    group, slash, _ = version.partition("/")
    # Other API groups have kinds of the same name, for example Pod of metrics.k8s.io.
    is_known = kind is not None and (not version or kind.group == (group if slash else ""))
    return name, kind if is_known else None


def _identify(document: Any, kind: _Kind) -> tuple[str, str]:
    """Returns namespace and name. Raises InvalidManifestError, BadValueError."""
    metadata = convert(document, NamedObject).metadata
    if not metadata.name:
        raise InvalidManifestError(_missing_name(metadata))
    try:
        namespace = namespace_name(metadata.namespace or _DEFAULT_NAMESPACE) if kind.namespaced else ""
        return namespace, kind.validate_name(metadata.name)
    except BadValueError as error:
        raise InvalidManifestError(f"metadata: {error}") from error


def _missing_name(metadata: NamedMetadata) -> str:
    if metadata.generate_name:
        return f"metadata.generateName: {quoted(metadata.generate_name)} needs an API server: set metadata.name"
    return "metadata.name is missing"


_KINDS: Mapping[str, _Kind] = {
    "Pod": _Kind("", pod_name, make_pod),
    "NetworkAttachmentDefinition": _Kind("k8s.cni.cncf.io", object_name, make_nad),
    "Namespace": _Kind("", namespace_name, make_namespace, namespaced=False),
}
