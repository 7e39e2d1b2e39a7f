"""Generates `/v1/openapi.json` (OpenAPI 3.1), which describes the read-only API.

Schemas are derived from the types that are encoded, so they cannot diverge from them.
"""

from typing import Any

import msgspec

from contrail_config.objects import Event
from manager.api.paging import DEFAULT_LIMIT, MAX_LIMIT
from manager.api.types import (
    DEFAULT_KINDS,
    AddressView,
    InterfaceView,
    NetworkView,
    NodeView,
    PodNetworks,
    PodTrace,
    PodView,
    PortView,
    SliceView,
    Summary,
    WatchedKind,
    WatchMessage,
    WatchMessageType,
)

Json = dict[str, Any]

TRACE_PATH = "/v1/pods/{namespace}/{name}/trace"

PORTS_PATH = "/v1/ports"

NO_CLUSTER = "NoCluster"
"""`reason` of a manager that knows no time lines, in contrast to one that does not find the pod."""

NO_AGENT = "NoAgent"
"""`reason` of a manager that knows no ports, or in a cluster only those of a single pod, which it asks an agent for."""

_TEXT: Json = {"type": "string"}
_TOKEN: Json = {
    "type": "http",
    "scheme": "bearer",
    "description": "Of the setting api-access.token-file, if there is one.",
}
_ERROR: Json = {"type": "object", "properties": {"error": _TEXT}, "required": ["error"]}
_NO_TRACE: Json = {**_ERROR, "properties": {"error": _TEXT, "reason": {"enum": [NO_CLUSTER]}}}
_NO_PORTS: Json = {**_ERROR, "properties": {"error": _TEXT, "reason": {"enum": [NO_AGENT]}}}

_LISTS: dict[str, tuple[str, Any]] = {
    "networks": ("Networks, found by namespace and name of their NAD.", NetworkView),
    "pods": ("Pods and their states.", PodView),
    "interfaces": ("Interfaces, by pod and index; `name` is that of the pod.", InterfaceView),
    "events": ("Events; `namespace` and `name` are those of their object.", Event),
    "pod-networks": ("Pods with node, state and networks, without their interfaces.", PodNetworks),
    "addresses": ("Addresses that are not free; networks are found as in their list.", AddressView),
    "nodes": ("Nodes and the latest reports of their agents; they have no namespace.", NodeView),
    "network-slices": (
        "What nodes tell each other of networks, found as in their list, and whether the API server has it.",
        SliceView,
    ),
    "ports": (
        "Ports of pods, by pod and index; `name` is that of the pod. In a cluster both are needed: one agent is asked.",
        PortView,
    ),
}

_Parameter = tuple[str, str, Json]

_FILTER: list[_Parameter] = [
    ("namespace", "Only objects of this namespace.", _TEXT),
    ("name", "Only objects of this name.", _TEXT),
]
_PAGING: list[_Parameter] = [
    (
        "limit",
        "Items of the page.",
        {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
    ),
    ("continue", "Token of the page before.", {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"}),
]
_WATCH_SUMMARY = (
    "Changes as server-sent events. Each event's data is a WatchMessage; `object` is an item of the list of `kind`. "
    "The stream begins with RESET, the state as APPLIED, and SYNCED. It ends with CLOSED, or breaks."
)
_TRACE_SUMMARY = (
    "The start of a pod in a cluster as a time line. A step without `ended` lasts. Times that are not `exact` "
    "are cut to seconds, each from the clock of the machine that wrote it."
)
_LAST_EVENT_ID = (
    "The last id that was received: only changes since then follow, or, if those are not known, the whole state."
)


def openapi_document() -> bytes:
    """Returns the document as JSON."""
    types = [Summary, PodTrace, *(view for _, view in _LISTS.values())]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(types, schemas, strict=True))
    paths = {"/v1/summary": _operation("Numbers of objects.", schema_of[Summary])}
    for kind, (summary, view) in _LISTS.items():
        paths[f"/v1/{kind}"] = _operation(summary, _page(schema_of[view]), [*_FILTER, *_PAGING])
    responses = paths[PORTS_PATH]["get"]["responses"]
    missing_ports = (
        f"With the reason {NO_AGENT}: the manager is that of a cluster, and the request not that of one pod."
    )
    responses["404"] = _missing(missing_ports, _NO_PORTS)
    responses["504"] = _missing("The agent of the node has not answered in time; the message names it.", _ERROR)
    paths[TRACE_PATH] = _trace(schema_of[PodTrace])
    paths["/v1/watch"] = _watch()
    components[WatchMessage.__name__] = _message([schema_of[_LISTS[kind][1]] for kind in WatchedKind])
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "contrail-manager", "version": "1"},
            "components": {"schemas": components, "securitySchemes": {"token": _TOKEN}},
            "security": [{}, {"token": []}],  # a token is required only if one is configured
            "paths": paths,
        }
    )


def _operation(
    summary: str,
    schema: Json,
    query: list[_Parameter] | None = None,
    *,
    media_type: str = "application/json",
) -> Json:
    parameters = [
        {"name": name, "in": "query", "description": description, "schema": each}
        for name, description, each in query or ()
    ]
    errors = {
        "400": "The request is invalid; the message names the parameter.",
        "401": "The manager requires a token: `Authorization: Bearer TOKEN`.",
        "421": "The host name of the request is not one by which the API is reached.",
        "503": "A standby, too many connections or watches, or the store is not available; retry later.",
    }
    responses = {
        status: {"description": text, "content": {"application/json": {"schema": _ERROR}}}
        for status, text in errors.items()
    }
    responses["200"] = {"description": "Done.", "content": {media_type: {"schema": schema}}}
    return {"get": {"summary": summary, "parameters": parameters, "responses": responses}}


def _trace(schema: Json) -> Json:
    described = _operation(_TRACE_SUMMARY, schema)
    described["get"]["parameters"] = [
        {"name": name, "in": "path", "required": True, "schema": _TEXT} for name in ("namespace", "name")
    ]
    missing = f"The pod does not exist, or, with the reason {NO_CLUSTER}, the manager does not run in a cluster."
    described["get"]["responses"]["404"] = _missing(missing, _NO_TRACE)
    return described


def _missing(description: str, schema: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _watch() -> Json:
    kinds: Json = {"type": "string", "default": ",".join(DEFAULT_KINDS), "examples": [WatchedKind.PODS.value]}
    query = [("kind", "Kinds, separated by commas.", kinds), *_FILTER]
    described = _operation(_WATCH_SUMMARY, _TEXT, query, media_type="text/event-stream")
    header = {"name": "Last-Event-ID", "in": "header", "description": _LAST_EVENT_ID, "schema": _TEXT}
    described["get"]["parameters"].append(header)
    return described


def _page(item: Json) -> Json:
    properties = {"items": {"type": "array", "items": item}, "continue": _TEXT}
    return {"type": "object", "properties": properties, "required": ["items"]}


def _message(objects: list[Json]) -> Json:
    properties: Json = {
        "type": {"enum": sorted(WatchMessageType)},
        "kind": {"enum": sorted(WatchedKind)},
        "object": {"anyOf": objects},
        "message": _TEXT,
    }
    return {"type": "object", "description": WatchMessage.__doc__, "properties": properties, "required": ["type"]}
