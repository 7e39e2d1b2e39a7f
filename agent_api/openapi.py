"""The description of the routes that is served as `/openapi.json` (OpenAPI 3.1).

The schemas of bodies are made of the very structs that are written and read, so they cannot differ from them.
"""

from functools import cache
from typing import Any

import msgspec

from agent_api.answers import VmCfgItem, VmItem
from agent_api.ports.port import PortRequest

Json = dict[str, Any]

_UUID = {"type": "string", "pattern": "^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$"}
_TEXT = {"type": "string", "minLength": 1}
_SECONDS = {"type": "number", "minimum": 0, "default": 0}

_ERRORS = {
    "400": "The request is wrong; the message names the field.",
    "403": "Writes are not taken at this listener.",
    "404": "Not there, or not whole.",
    "408": "The body came too slowly.",
    "413": "The body is too large.",
    "500": "The answer cannot be given, or ports cannot be kept: see the message.",
    "503": "Ports are not reloaded yet, or the agent is stopping.",
}

_ERROR_SCHEMA: Json = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_EMPTY_SCHEMA: Json = {"type": "object", "maxProperties": 0}


@cache
def openapi_document() -> bytes:
    """Returns the document as JSON."""
    (configured, plugged, ports), schemas = msgspec.json.schema_components(
        [list[VmCfgItem], list[VmItem], PortRequest | list[PortRequest]], ref_template="#/components/schemas/{name}"
    )
    vm, vmi = _in_path("vm", _UUID), _in_path("vmi", _UUID)
    container = _in_query("vm-id", _TEXT, "Only what this container plugged is freed.")
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "contrail-agent", "version": "1"},
            "components": {"schemas": schemas},
            "paths": {
                "/vm-cfg/{name}": {"get": _configured(configured)},
                "/vm": {"post": _plug(ports)},
                **{
                    path: {
                        "get": _operation("The plugged interfaces.", plugged, errors=["404"], parameters=where),
                        "delete": _operation(
                            "Frees ports; those that are not there are no error.",
                            _EMPTY_SCHEMA,
                            errors=["400", "403", "500", "503"],
                            parameters=[*where, container],
                        ),
                    }
                    for path, where in (("/vm/{vm}", [vm]), ("/vm/{vm}/{vmi}", [vm, vmi]))
                },
            },
        }
    )


def _configured(answer: Json) -> Json:
    return _operation(
        "A pod's interfaces as configured, in index order.",
        answer,
        errors=["400", "404", "500", "503"],
        parameters=[
            _in_path("name", _TEXT),
            _in_query("wait", _SECONDS, "Seconds for which the answer is held until the list is there; 60 at most."),
            _in_query("uid", _TEXT, "Answered only for the pod of this uid, or of this config hash."),
        ],
    )


def _plug(body: Json) -> Json:
    operation = _operation(
        "Plugs ports, all or none.", _EMPTY_SCHEMA, errors=["400", "403", "408", "413", "500", "503"], parameters=[]
    )
    return operation | {"requestBody": {"required": True, "content": _json(body)}}


def _operation(summary: str, answer: Json, *, errors: list[str], parameters: list[Json]) -> Json:
    responses = {status: {"description": _ERRORS[status], "content": _json(_ERROR_SCHEMA)} for status in errors}
    responses["200"] = {"description": "Done.", "content": _json(answer)}
    return {"summary": summary, "parameters": parameters, "responses": responses}


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _in_path(name: str, schema: Json) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(name: str, schema: Json, description: str) -> Json:
    return {"name": name, "in": "query", "schema": schema, "description": description}
