"""References in the bodies of creates and updates: resolved to uuids, and shown with the names that these have."""

from typing import Any

from tests.support.contrail_api.api_errors import ApiError, name_not_found, no_id_error, unknown_id, unknown_reference
from tests.support.contrail_api.database import Database
from tests.support.contrail_api.kinds import Kind, reference_key
from tests.support.contrail_api.names import duplicate_name
from tests.support.contrail_api.stored import Object

Resolved = dict[str, dict[str, Any]]
"""Attributes by uuid by type."""


def resolve_for_create(database: Database, kind: Kind, body: Object) -> Resolved:
    """Returns what `to` names; `uuid` is not compared with it. Raises ApiError."""
    return {
        target: dict(_created(database, target, item) for item in body[key])
        for target in kind.references
        if body.get(key := reference_key(target))
    }


def resolve_for_update(database: Database, kind: Kind, body: Object) -> Resolved:
    """Returns the references of an update, by `uuid` if it is there; those that it does not name stay as they are."""
    return {
        target: dict(_updated(database, target, item) for item in body[key] or [])
        for target in kind.references
        if (key := reference_key(target)) in body
    }


def shown(database: Database, references: dict[str, Any], base: str | None) -> list[Object]:
    """Returns references as JSON, with `href` if there is a base; those to deleted objects have the name ERROR."""
    return [_shown(database, uuid, attributes, base) for uuid, attributes in references.items()]


def _created(database: Database, kind: str, item: Object) -> tuple[str, Any]:
    if "to" not in item:
        raise ApiError(500, "KeyError: 'to'")
    found = _named(database, kind, item)
    if found:
        return found[0], item.get("attr")
    if item.get("uuid"):
        raise no_id_error(f"{kind.replace('-', '_')} {':'.join(item['to'])}")
    raise unknown_reference(item)


def _updated(database: Database, kind: str, item: Object) -> tuple[str, Any]:
    if uuid := item.get("uuid"):
        if uuid not in database.objects:
            raise unknown_id(uuid)
        return uuid, item.get("attr")
    found = _named(database, kind, item)
    if not found:
        raise name_not_found(item["to"])
    return found[0], item.get("attr")


def _named(database: Database, kind: str, item: Object) -> list[str]:
    found = database.named(kind, tuple(item["to"]))
    if len(found) > 1:
        raise duplicate_name(tuple(item["to"]))
    return found


def _shown(database: Database, uuid: str, attributes: Any, base: str | None) -> Object:
    target = database.objects.get(uuid)
    item: Object = {"to": list(target.fq_name) if target else ["ERROR"], "uuid": uuid, "attr": attributes}
    if base is not None and target:
        item["href"] = f"{base}{target.path}"
    return item
