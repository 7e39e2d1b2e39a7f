"""The description of the pages that is served as `/openapi.json` (OpenAPI 3.1), made of the operations themselves.

The schemas of bodies are made of the very structs that are written and read, so they cannot differ from them.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from agent_api.handlers.operation import IN_PATH, Operation, Parameter

Json = dict[str, Any]

_DESCRIPTIONS = {
    400: "The request is wrong; the message names the field.",
    403: "Writes are not taken at this listener.",
    404: "Not there, or not whole; or no such page.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    500: "It cannot be answered, or not be done: see the message.",
    503: "Not ready or too busy, see the message; worth another try.",
}

_ERROR_SCHEMA: Json = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_EMPTY_SCHEMA: Json = {"type": "object", "maxProperties": 0}
_ON_EVERY_PAGE = (400, 503)  # what answers a head that is malformed, and a connection too many


def openapi_document(operations: Sequence[Operation]) -> bytes:
    """Returns the document as JSON."""
    types = [kind for each in operations for kind in (each.answer, each.body, each.unready) if kind is not None]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(types, schemas, strict=True))
    paths: dict[str, Json] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, schema_of)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "contrail-agent", "version": "1"},
            "components": {"schemas": components},
            "paths": paths,
        }
    )


def _operation(operation: Operation, schema_of: dict[Any, Json]) -> Json:
    answer = _EMPTY_SCHEMA if operation.answer is None else schema_of[operation.answer]
    statuses = sorted({*operation.errors, *_ON_EVERY_PAGE, *([404] if operation.names_in_path() else [])})
    errors = {
        str(status): {"description": _DESCRIPTIONS[status], "content": _json(_ERROR_SCHEMA)} for status in statuses
    }
    described: Json = {
        "summary": operation.summary,
        "parameters": [*map(_in_path, operation.names_in_path()), *map(_in_query, operation.query)],
        "responses": {"200": {"description": "Done.", "content": {operation.media: {"schema": answer}}}, **errors},
    }
    if operation.unready is not None:
        described["responses"]["503"]["content"] = _json(schema_of[operation.unready])
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": _json(schema_of[operation.body])}
    return described


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _in_path(name: str) -> Json:
    pattern, example = IN_PATH[name]
    schema = {"type": "string", "pattern": f"^{pattern}$", "examples": [example]}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(parameter: Parameter) -> Json:
    return {
        "name": parameter.name,
        "in": "query",
        "schema": parameter.schema,
        "description": parameter.description,
    }
