"""Operation: one endpoint with its method, path, parameters, bodies and handler.

Paths are written as in OpenAPI (`/vm/{vm}`). A path parameter has the same pattern in all operations: a uuid that is
not lower case is answered with 404, as by the Contrail vrouter agent.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from aiohttp import web

from agent_api.errors import BadRequestError
from agent_api.field_types import UUID_PATTERN
from contrail_service.pages import JSON_CONTENT_TYPE

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PathParameter(NamedTuple):
    """The pattern of a path parameter's whole value, and an example."""

    pattern: str
    example: str


PATH_PARAMETERS = {
    "vm": PathParameter(UUID_PATTERN, "aaaaaaaa-0000-4000-8000-000000000001"),
    "vmi": PathParameter(UUID_PATTERN, "159b591c-e57e-11f1-b951-02fc00000001"),
    "name": PathParameter(".*", "k8s__default__p1"),
}

WRITE_ERRORS = (403, 500)
BODY_ERRORS = (403, 408, 413, 500)

NOT_FOUND = "{ Not Found }"
"""The vrouter agent's text for an object that is missing or incomplete."""

_IN_BRACES = re.compile(r"\{(\w+)\}")


class QueryParameter(NamedTuple):
    """A query parameter; `schema` is a JSON schema. The Contrail vrouter agent ignores the whole query."""

    name: str
    description: str
    schema: dict[str, Any]


class Operation(NamedTuple):
    """One endpoint. `response` and `request_body` are types; None means `{}` and no body.

    `errors` are possible statuses besides 200 and the common ones (400, 503, and 404 if there is a path parameter);
    `media_type` is that of a 200 response, `unready_response` the type of a 503 response that is not an error, and
    `not_found_response` the type of a 404 response that says more than an error.
    """

    method: str
    path: str
    summary: str
    handler: Handler
    errors: tuple[int, ...] = ()
    response: Any = None
    request_body: Any = None
    query: tuple[QueryParameter, ...] = ()
    media_type: str = "application/json"
    unready_response: Any = None
    not_found_response: Any = None

    def route(self) -> web.RouteDef:
        """Returns the aiohttp route."""
        path = _IN_BRACES.sub(lambda match: f"{{{match[1]}:{PATH_PARAMETERS[match[1]].pattern}}}", self.path)
        if self.method == "GET":
            # HEAD is an unknown request (404), as any other method without an operation.
            return web.get(path, self.handler, allow_head=False)
        return web.route(self.method, path, self.handler)

    def path_parameters(self) -> list[str]:
        """Returns the names of the path parameters in order."""
        return _IN_BRACES.findall(self.path)


def json_bytes_response(body: bytes) -> web.Response:
    """Returns a response with encoded JSON."""
    return web.Response(body=body, headers={"Content-Type": JSON_CONTENT_TYPE})


def ok_response() -> web.Response:
    """Returns the vrouter agent's response to a write that succeeded or had nothing to do."""
    return json_bytes_response(b"{}")


def not_found() -> web.HTTPNotFound:
    """Returns the vrouter agent's response for an object that is missing or incomplete."""
    return web.HTTPNotFound(text=NOT_FOUND)


def query_parameter(request: web.Request, key: str) -> str | None:
    """Returns a query parameter, None if it is missing. Raises BadRequestError if it is empty."""
    value = request.query.get(key)
    if value == "":
        raise BadRequestError(f"{key}: must not be empty; omit it or set a value")
    return value
