"""Lists of a type: anchors, filters, pages, fields, details and counts."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tests.support.contrail_api.api_errors import ApiError, internal_error
from tests.support.contrail_api.database import Database
from tests.support.contrail_api.kinds import MAPS, Kind
from tests.support.contrail_api.names import duplicate_name
from tests.support.contrail_api.stored import Object, Stored
from tests.support.contrail_api.views import Views

DEFAULT_PAGE = 256


def list_objects(database: Database, kind: Kind, query: Mapping[str, Any], base: str) -> Object:
    """Returns the response to a list. Raises ApiError."""
    anchors = _anchors(database, kind, query)
    found = _filtered(_selected(database, kind, query, anchors), query)
    if _is_true(query.get("count")):
        return {kind.collection: {"count": len(found)}}
    views = Views(database, None if "exclude_hrefs" in query else base)
    if "page_marker" not in query:
        return {kind.collection: _items(views, found, kind, query)}
    page, marker = _page(found, query, anchored=anchors is not None)
    return {kind.collection: _items(views, page, kind, query), "marker": marker}


def _anchors(database: Database, kind: Kind, query: Mapping[str, Any]) -> set[str] | None:
    """Returns the uuids to which anchors limit a list, None if there is no anchor."""
    sets = []
    if (uuids := _ids(query, "obj_uuids")) is not None:
        sets.append(set(uuids))
    if (parents := _parents(database, kind, query)) is not None:
        sets.append({child.uuid for parent in parents for child in database.children(parent, kind.name)})
    if (targets := _ids(query, "back_ref_id")) is not None:
        sets.append({one.uuid for target in targets for one in database.referrers(target, kind.name)})
    return set.intersection(*sets) if sets else None


def _parents(database: Database, kind: Kind, query: Mapping[str, Any]) -> list[str] | None:
    if (name := query.get("parent_fq_name_str")) is not None:
        types = (query["parent_type"],) if "parent_type" in query else kind.parents
        return [uuid for type_ in types for uuid in database.named(type_, tuple(name.split(":")))]
    return _ids(query, "parent_id")


def _selected(database: Database, kind: Kind, query: Mapping[str, Any], anchors: set[str] | None) -> Iterable[Stored]:
    if names := query.get("fq_names"):
        return _named(database, kind, names)
    everything = database.of_kind(kind)
    if anchors is None:
        return everything.values()
    return [everything[uuid] for uuid in anchors if uuid in everything]


def _named(database: Database, kind: Kind, names: str) -> list[Stored]:
    found = []
    for name in (tuple(text.split(":")) for text in names.split(",")):
        uuids = database.named(kind, name)
        if len(uuids) > 1:
            raise duplicate_name(name)
        found += [database.objects[uuid] for uuid in uuids]
    return found


def _filtered(found: Iterable[Stored], query: Mapping[str, Any]) -> list[Stored]:
    text = query.get("filters")
    if text is None:
        return list(found)
    conditions = [_condition(part) for part in text.split(",")]
    return [
        stored
        for stored in found
        if all(key not in MAPS and stored.properties.get(key) == value for key, value in conditions)
    ]


def _condition(text: str) -> tuple[str, Any]:
    key, separator, value = text.partition("==")
    try:
        decoded = msgspec.json.decode(value)
    except msgspec.DecodeError as error:
        raise ApiError(400, f"Invalid filter {text}") from error
    if not separator:
        raise ApiError(400, f"Invalid filter {text}")
    return key, decoded


def _page(found: list[Stored], query: Mapping[str, Any], *, anchored: bool) -> tuple[list[Stored], str | None]:
    limit = _limit(query)
    marker = query["page_marker"]
    if marker and not anchored and ":" not in marker:
        raise ApiError(400, f"Invalid page_marker {marker}: no name and uuid")
    ordered = sorted(found, key=lambda stored: _marker(stored, anchored=anchored))
    page = [stored for stored in ordered if _marker(stored, anchored=anchored) > marker][:limit]
    return page, _marker(page[-1], anchored=anchored) if len(page) == limit else None


def _marker(stored: Stored, *, anchored: bool) -> str:
    return stored.uuid if anchored else f"{':'.join(stored.fq_name)}:{stored.uuid}"


def _limit(query: Mapping[str, Any]) -> int:
    text = query.get("page_limit", DEFAULT_PAGE)
    try:
        limit = int(text)
    except ValueError:
        limit = 0
    if limit <= 0:
        raise ApiError(400, f"Invalid page_limit {text}: not a positive number")
    return limit


def _items(views: Views, found: Iterable[Stored], kind: Kind, query: Mapping[str, Any]) -> list[Object]:
    fields = [field for field in str(query.get("fields", "")).split(",") if field]
    if _is_true(query.get("detail")):
        return [{kind.name: views.whole(stored) | (views.fields(stored, fields) if fields else {})} for stored in found]
    if fields:
        return [views.fields(stored, fields) for stored in found]
    return [views.identity(stored) for stored in found]


def _ids(query: Mapping[str, Any], key: str) -> list[str] | None:
    if key not in query:
        return None
    if not isinstance(query[key], str):
        raise internal_error()
    return [uuid for uuid in query[key].split(",") if uuid]


def _is_true(value: Any) -> bool:
    return value is True or "true" in str(value).lower()
