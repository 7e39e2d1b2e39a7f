"""Bodies of requests, and the properties in those of creates and updates."""

from typing import Any

import msgspec
from aiohttp import web

from tests.support.contrail_api.api_errors import ApiError, bad_property, internal_error
from tests.support.contrail_api.kinds import COMMON, MAPS, Kind
from tests.support.contrail_api.stored import Object, annotation_map

LARGEST = 1_024_000
"""Bytes of a body."""


async def read_json(request: web.Request) -> Object:
    """Returns the JSON object of a body. Raises ApiError."""
    body = await request.content.read(LARGEST + 1)
    while len(body) <= LARGEST and (more := await request.content.read(LARGEST)):
        body += more
    if len(body) > LARGEST:
        raise ApiError(413, f"Request body too large: more than {LARGEST} bytes")
    try:
        value: Any = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise internal_error() from error
    if request.content_type != "application/json" or not isinstance(value, dict) or not value:
        raise internal_error()
    return value


def unwrap(kind: Kind, body: Object) -> Object:
    """Returns the object in the wrapper of its type. Raises ApiError."""
    inner = body.get(kind.name)
    if not isinstance(inner, dict) or not inner:
        raise internal_error()
    return inner


def properties(kind: Kind, body: Object) -> Object:
    """Returns the properties of a type in a body; everything else is dropped. Raises ApiError."""
    known = (kind.properties | COMMON) - {"id_perms", "perms2", "display_name"}
    return {key: _map(key, body[key]) if key in MAPS else body[key] for key in known if key in body}


def check_annotation(value: Any) -> None:
    """Raises ApiError unless the value of an annotation is a string or null."""
    if value is not None and not isinstance(value, str):
        raise bad_property("annotations value", f"value: string value expected instead of {value}")


def _map(key: str, value: Any) -> Object | None:
    if value is None:
        raise ApiError(500, f"TypeError: '{key}' is null")
    pairs = value.get("key_value_pair") or []
    for pair in pairs:
        check_annotation(pair.get("value"))
    return annotation_map(pairs) if pairs else None
