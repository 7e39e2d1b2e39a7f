"""Generates `/openapi.json` (OpenAPI 3.1) from the operations that are served.

Schemas of bodies are derived from the structs that are decoded and encoded, so they cannot diverge from them. The
status endpoints belong to the process, not to the agent; `status_operations` describes those that it serves.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from aiohttp import web

from agent_api.datapath.kind import Datapath
from agent_api.handlers.operation import PATH_PARAMETERS, Operation, QueryParameter

Json = dict[str, Any]

_DESCRIPTIONS = {
    400: "The request is invalid; the message names the field.",
    403: "This listener does not accept writes.",
    404: "Not found or not complete, or unknown path.",
    408: "The body arrived too slowly.",
    409: "Another process programs the datapath; the message names it.",
    413: "The body is too large.",
    500: "The request failed; see the message.",
    503: "Not ready or overloaded, see the message; retry later.",
}

_ERROR_SCHEMA: Json = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_EMPTY_SCHEMA: Json = {"type": "object", "maxProperties": 0}
_COMMON_ERRORS = (400, 503)  # a malformed request head; too many connections


class Health(msgspec.Struct):
    """Liveness and version of the process."""

    healthy: bool
    version: str


class Readiness(msgspec.Struct):
    """Readiness of the process, and the kind of the node's datapath.

    With `ready`, `reasons` concern single pods; without it at least one of them concerns the whole node.
    """

    ready: bool
    reasons: list[str]
    datapath: Datapath


_STATUS_OPERATIONS = {
    "/healthz": partial(Operation, "GET", "/healthz", "Liveness.", response=Health),
    "/readyz": partial(Operation, "GET", "/readyz", "Readiness.", response=Readiness, unready_response=Readiness),
    "/metrics": partial(Operation, "GET", "/metrics", "Prometheus metrics.", response=str, media_type="text/plain"),
}


def status_operations(routes: Sequence[web.RouteDef]) -> list[Operation]:
    """Returns the operations of those routes that are status endpoints."""
    return [
        _STATUS_OPERATIONS[route.path](handler=route.handler) for route in routes if route.path in _STATUS_OPERATIONS
    ]


def openapi_document(operations: Sequence[Operation]) -> bytes:
    """Returns the document as JSON."""
    types = [body for each in operations for body in _bodies(each) if body is not None]
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


def _bodies(operation: Operation) -> tuple[Any, ...]:
    return operation.response, operation.request_body, operation.unready_response, operation.not_found_response


def _operation(operation: Operation, schema_of: dict[Any, Json]) -> Json:
    response = _EMPTY_SCHEMA if operation.response is None else schema_of[operation.response]
    statuses = sorted({*operation.errors, *_COMMON_ERRORS, *([404] if operation.path_parameters() else [])})
    errors = {
        str(status): {"description": _DESCRIPTIONS[status], "content": _json(_ERROR_SCHEMA)} for status in statuses
    }
    described: Json = {
        "summary": operation.summary,
        "parameters": [*map(_path_parameter, operation.path_parameters()), *map(_query_parameter, operation.query)],
        "responses": {
            "200": {"description": "Done.", "content": {operation.media_type: {"schema": response}}},
            **errors,
        },
    }
    if operation.unready_response is not None:
        described["responses"]["503"]["content"] = _json(schema_of[operation.unready_response])
    if operation.not_found_response is not None:
        described["responses"]["404"]["content"] = _json(schema_of[operation.not_found_response])
    if operation.request_body is not None:
        described["requestBody"] = {"required": True, "content": _json(schema_of[operation.request_body])}
    return described


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _path_parameter(name: str) -> Json:
    pattern, example = PATH_PARAMETERS[name]
    schema = {"type": "string", "pattern": f"^{pattern}$", "examples": [example]}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameter(parameter: QueryParameter) -> Json:
    return {
        "name": parameter.name,
        "in": "query",
        "schema": parameter.schema,
        "description": parameter.description,
    }
