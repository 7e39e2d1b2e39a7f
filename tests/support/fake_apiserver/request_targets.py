"""Parsing of requests: kind, object and verb."""

from collections.abc import Iterable
from typing import NamedTuple

from aiohttp import web

from tests.support.fake_apiserver.kinds import BUILT_IN, Kind, kinds_of
from tests.support.fake_apiserver.status_errors import StatusError, UnknownPathError
from tests.support.fake_apiserver.storage import Object

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class RequestTarget(NamedTuple):
    """Target of a path; `name` is empty for a collection."""

    kind: Kind
    namespace: str
    name: str
    subresource: str


def find_target(path: str, definitions: Iterable[Object]) -> RequestTarget:
    """Parses a path. Raises UnknownPathError unless its kind is built in or established by a definition."""
    match path.split("/")[1:]:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            raise UnknownPathError
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] != "status":
        _, namespace, *rest = rest
    plural, name, subresource, *_ = [*rest, "", ""]
    custom = [kind for definition in definitions if "status" in definition for kind in kinds_of(definition)]
    for kind in (*BUILT_IN, *custom):
        served = subresource in ("", "status" if kind.has_status else "")
        if served and (kind.group, kind.version, kind.plural) == (group, version, plural):
            return RequestTarget(kind, namespace, name, subresource)
    raise UnknownPathError


def find_verb(request: web.Request, target: RequestTarget) -> str:
    """The verb, as in authorization rules."""
    if request.method == "GET":
        return "get" if target.name else "watch" if request.query.get("watch") == "true" else "list"
    if request.method not in _VERBS or bool(target.name) is (request.method == "POST"):
        raise StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    return _VERBS[request.method]
