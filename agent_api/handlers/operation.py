"""One page: method and path, what it takes and answers, and what handles it.

A path is written as OpenAPI writes it (`/vm/{vm}`). Which values a name in braces stands for is the same on all pages:
a uuid is lower case, or the page is not there, as upstream has it.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from aiohttp import web

from agent_api.errors import BadRequestError
from agent_api.middlewares import UPSTREAM_JSON
from agent_api.values import UUID_PATTERN

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class InPath(NamedTuple):
    """What a name in braces stands for: a pattern of its whole value, and an example."""

    pattern: str
    example: str


IN_PATH = {
    "vm": InPath(UUID_PATTERN, "aaaaaaaa-0000-4000-8000-000000000001"),
    "vmi": InPath(UUID_PATTERN, "159b591c-e57e-11f1-b951-02fc00000001"),
    "name": InPath(".*", "k8s__default__p1"),
}

ERRORS_OF_A_WRITE = (403, 500)
ERRORS_OF_A_BODY = (403, 408, 413, 500)

_IN_BRACES = re.compile(r"\{(\w+)\}")


class Parameter(NamedTuple):
    """A parameter of the query, which upstream ignores whole; `schema` is a JSON schema."""

    name: str
    description: str
    schema: dict[str, Any]


class Operation(NamedTuple):
    """One page. `answer` and `body` are types, None where there is nothing but `{}` or nothing at all.

    `errors` are the statuses that it may answer beside 200 and those of every page (400, 503, and 404 where a name is
    in the path); `media` is the type of an answer with 200, `unready` that of one with 503 that is no error.
    """

    method: str
    path: str
    summary: str
    handle: Handler
    errors: tuple[int, ...] = ()
    answer: Any = None
    body: Any = None
    query: tuple[Parameter, ...] = ()
    media: str = "application/json"
    unready: Any = None

    def route(self) -> web.RouteDef:
        """Returns the route to serve it by."""
        path = _IN_BRACES.sub(lambda match: f"{{{match[1]}:{IN_PATH[match[1]].pattern}}}", self.path)
        if self.method == "GET":
            return web.get(path, self.handle, allow_head=False)
        return web.route(self.method, path, self.handle)

    def names_in_path(self) -> list[str]:
        """Returns the names in braces, in their order."""
        return _IN_BRACES.findall(self.path)


def answer_json(body: bytes) -> web.Response:
    """Returns a page of JSON."""
    return web.Response(body=body, headers={"Content-Type": UPSTREAM_JSON})


def done() -> web.Response:
    """Returns what upstream answers when something was done, or nothing was to do."""
    return answer_json(b"{}")


def not_found() -> web.HTTPNotFound:
    """Returns what upstream answers of what is not there, or not whole."""
    return web.HTTPNotFound(text="{ Not Found }")


def text_parameter(request: web.Request, key: str) -> str | None:
    """Returns a parameter of the query, None if it is not there. Raises BadRequestError."""
    value = request.query.get(key)
    if value == "":
        raise BadRequestError(f"{key}: is empty; leave it out or give it a value")
    return value
