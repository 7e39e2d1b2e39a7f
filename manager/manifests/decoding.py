"""From documents to the objects that the manager reads: pods, network attachment definitions and namespaces.

Each object is judged for itself, so one that is wrong does not take its neighbours with it. Everything else that a
folder of manifests holds (services, deployments, ...) is passed over.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from manager.manifests.errors import InvalidManifestError
from manager.manifests.objects import Identity, convert, make_nad, make_namespace, make_pod
from manager.manifests.problems import ManifestLocation, ManifestReason, ObjectKey, file_problem, object_problem
from manager.manifests.wire import NamedMetadata, NamedObject
from manager.parsing.errors import BadValueError
from manager.parsing.names import namespace_name, object_name, pod_name
from manager.parsing.quoting import quoted
from manager.source import Nad, Namespace, Pod, Problem

_log = logging.getLogger(__name__)

_DEFAULT_NAMESPACE = "default"


class ManifestObject(NamedTuple):
    """An object as a manifest states it, its `uid` too: empty if it states none."""

    key: ObjectKey
    place: ManifestLocation
    object: Pod | Nad | Namespace


class _Kind(NamedTuple):
    """A kind that we read: its API group, what its names look like, and how to make the object from a document."""

    group: str
    check_name: Callable[[Any], str]
    make: Callable[[Identity, Any], Pod | Nad | Namespace]
    namespaced: bool = True


def decode_document(document: Any, *, path: str, position: int, node: str) -> Iterator[ManifestObject | Problem]:
    """The objects in a document, or the problem with each. `node`: where pods run that name none."""
    place = ManifestLocation(path, position)
    try:
        items = _items(document)
    except InvalidManifestError as error:
        yield _unidentified(place, error)
        return
    if items is None:
        yield from _decode_object(document, place, node)
        return
    for number, item in enumerate(items, 1):
        yield from _decode_object(item, place._replace(item=number), node)


def _decode_object(document: Any, place: ManifestLocation, node: str) -> Iterator[ManifestObject | Problem]:
    try:
        kind_name, kind = _kind(document)
        if kind is None:
            _log.debug("%s: %s is passed over", place, kind_name)
            return
        namespace, name = _identify(document, kind)
    except (InvalidManifestError, BadValueError) as error:
        yield _unidentified(place, error)
        return
    key = (kind_name, namespace, name)
    try:
        yield ManifestObject(key, place, kind.make(Identity(namespace, name, node), document))
    except (InvalidManifestError, BadValueError) as error:
        yield object_problem(key, ManifestReason.INVALID, f"{place}: {error}", path=place.path)


def _unidentified(place: ManifestLocation, error: Exception) -> Problem:
    return file_problem(place.path, ManifestReason.INVALID, f"cannot be used: {place}: {error}")


def _items(document: Any) -> list[Any] | None:
    """The items of a `kind: List`; None if it is something else. Raises UnusableError."""
    if document is None:
        return []
    if not isinstance(document, dict):
        raise InvalidManifestError(f"{quoted(document)} is no Kubernetes object")
    if document.get("kind") != "List":
        return None
    items = document.get("items")
    if not isinstance(items, list):
        raise InvalidManifestError(f"items: {quoted(items)} is no list")
    return items


def _kind(document: Any) -> tuple[str, _Kind | None]:
    """The kind's name, and the kind if it is one of ours. Raises UnusableError.

    An API version may be left out, as the multi-network design's own example does.
    """
    if not isinstance(document, dict):
        raise InvalidManifestError(f"{quoted(document)} is no Kubernetes object")
    name, version = document.get("kind"), document.get("apiVersion", "")
    if not isinstance(name, str) or not name:
        raise InvalidManifestError(f"kind: {quoted(name)} is no text, so this is no Kubernetes object")
    if not isinstance(version, str):
        raise InvalidManifestError(f"apiVersion: {quoted(version)} is no text")
    if name == "List":
        raise InvalidManifestError("kind: a List within a List")
    kind = _KINDS.get(name)
    group, slash, _ = version.partition("/")
    is_ours = kind is not None and (not version or kind.group == (group if slash else ""))
    return name, kind if is_ours else None


def _identify(document: Any, kind: _Kind) -> tuple[str, str]:
    """Namespace and name. Raises UnusableError, BadValueError."""
    metadata = convert(document, NamedObject).metadata
    if not metadata.name:
        raise InvalidManifestError(_missing_name(metadata))
    try:
        namespace = namespace_name(metadata.namespace or _DEFAULT_NAMESPACE) if kind.namespaced else ""
        return namespace, kind.check_name(metadata.name)
    except BadValueError as error:
        raise InvalidManifestError(f"metadata: {error}") from error


def _missing_name(metadata: NamedMetadata) -> str:
    if metadata.generate_name:
        return (
            f"metadata.generateName: {quoted(metadata.generate_name)} needs an API server, here metadata.name is needed"
        )
    return "metadata.name is missing"


_KINDS: Mapping[str, _Kind] = {
    "Pod": _Kind("", pod_name, make_pod),
    "NetworkAttachmentDefinition": _Kind("k8s.cni.cncf.io", object_name, make_nad),
    "Namespace": _Kind("", namespace_name, make_namespace, namespaced=False),
}
