"""The writing verbs and their validation."""

import copy
import uuid
from datetime import UTC, datetime
from typing import Any

from tests.support.fake_apiserver.kinds import NAMESPACES, PODS, Kind
from tests.support.fake_apiserver.status_errors import already_exists, bad_request, conflict, invalid, not_found
from tests.support.fake_apiserver.storage import Object, Storage

_GRACE = 30
_KEPT = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "name",
    "namespace",
    "generation",
)


def find(storage: Storage, kind: Kind, namespace: str, name: str) -> Object:
    try:
        return storage.objects(kind)[namespace, name]
    except KeyError:
        raise not_found(kind, name) from None


def create(storage: Storage, kind: Kind, namespace: str, body: Object) -> Object:
    _check_kind(kind, body)
    if namespace and ("", namespace) not in storage.objects(NAMESPACES):
        raise not_found(NAMESPACES, namespace)
    item = copy.deepcopy(body)
    metadata = item.setdefault("metadata", {})
    metadata |= {"name": _name(kind, metadata), "uid": str(uuid.uuid4()), "creationTimestamp": _now()}
    metadata |= {"namespace": namespace} if namespace else {}
    metadata |= {"generation": 1} if kind.custom else {}
    if kind.has_status and kind.custom:
        item.pop("status", None)
    if (namespace, metadata["name"]) in storage.objects(kind):
        raise already_exists(kind, metadata["name"])
    return storage.put(kind, item)


def replace(storage: Storage, kind: Kind, namespace: str, name: str, body: Object, subresource: str) -> Object:
    _check_kind(kind, body)
    current = find(storage, kind, namespace, name)
    stated = body.get("metadata", {})
    if stated.get("uid", current["metadata"]["uid"]) != current["metadata"]["uid"]:
        raise conflict(kind, name, "Precondition failed: UID in precondition differs from UID in object meta")
    if not stated.get("resourceVersion") and not kind.blind_updates:
        raise invalid(kind, name, "metadata.resourceVersion", "must be specified for an update")
    return _update(storage, kind, current, body, subresource)


def patch(storage: Storage, kind: Kind, namespace: str, name: str, changes: Object, subresource: str) -> Object:
    current = find(storage, kind, namespace, name)
    if changes.get("metadata", {}).get("uid", current["metadata"]["uid"]) != current["metadata"]["uid"]:
        raise invalid(kind, name, "metadata.uid", "field is immutable")
    return _update(storage, kind, current, merge(current, changes), subresource)


def delete(storage: Storage, kind: Kind, namespace: str, name: str, options: Object) -> Object:
    """Deletes the object, or marks it as terminating if a finalizer or kubelet must act first; returns it."""
    current = find(storage, kind, namespace, name)
    for key, value in options.get("preconditions", {}).items():
        if current["metadata"][key] != value:
            kept = current["metadata"][key]
            raise conflict(
                kind, name, f"the {key} in the precondition ({value}) does not match the one in record ({kept})"
            )
    grace = _grace_period(kind, current, options)
    if not grace and not current["metadata"].get("finalizers"):
        return storage.remove(kind, current)
    metadata = {"deletionTimestamp": _now(), "deletionGracePeriodSeconds": grace} | current["metadata"]
    return storage.put(kind, {**current, "metadata": metadata})


def merge(target: Any, changes: Any) -> Any:
    """RFC 7396."""
    if not isinstance(changes, dict):
        return changes
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def _update(storage: Storage, kind: Kind, current: Object, body: Object, subresource: str) -> Object:
    name = current["metadata"]["name"]
    stated = body.get("metadata", {}).get("resourceVersion")
    if stated and stated != current["metadata"]["resourceVersion"]:
        raise conflict(kind, name, "the object has been modified; please apply your changes to the latest version")
    wanted = _wanted(kind, current, copy.deepcopy(body), subresource)
    if wanted == current:
        return current
    if kind.custom and wanted.get("spec") != current.get("spec"):
        wanted["metadata"]["generation"] = current["metadata"]["generation"] + 1
    metadata = wanted["metadata"]
    if metadata.get("deletionTimestamp") and not metadata.get("finalizers") and kind != PODS:
        return storage.remove(kind, wanted)
    return storage.put(kind, wanted)


def _wanted(kind: Kind, current: Object, body: Object, subresource: str) -> Object:
    """The resulting object: a subresource changes only its own part, other writes everything else."""
    kept = {key: current["metadata"][key] for key in (*_KEPT, "resourceVersion") if key in current["metadata"]}
    metadata = {**body.get("metadata", {}), **kept}
    if subresource:
        changed = {"status": body["status"]} if "status" in body else {}
        rest = {key: value for key, value in current.items() if key != "status"}
        return {**rest, **changed} if kind.custom else {**rest, **changed, "metadata": metadata}
    wanted = {**body, "metadata": metadata, "apiVersion": current["apiVersion"], "kind": current["kind"]}
    if kind.has_status:
        wanted.pop("status", None)
        wanted |= {"status": current["status"]} if "status" in current else {}
    return wanted


def _check_kind(kind: Kind, body: Object) -> None:
    stated = body.get("apiVersion"), body.get("kind")
    if stated != (kind.api_version, kind.kind) and (kind.custom or any(stated)):
        raise bad_request(f"the object provided is {stated[0]} {stated[1]}, not {kind.api_version} {kind.kind}")


def _name(kind: Kind, metadata: Object) -> str:
    if "generateName" in metadata and "name" not in metadata:
        return f"{metadata['generateName']}{uuid.uuid4().hex[:5]}"
    name: str = metadata.get("name", "")
    if not name:
        raise invalid(kind, "", "metadata.name", "Required value: name or generateName is required")
    return name


def _grace_period(kind: Kind, current: Object, options: Object) -> int:
    """Grace period in seconds; only pods bound to a node have one, as kubelet must stop them."""
    if kind != PODS or not current.get("spec", {}).get("nodeName"):
        return 0
    grace: int = options.get("gracePeriodSeconds", current["spec"].get("terminationGracePeriodSeconds", _GRACE))
    return grace


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
