"""What holds for all routes of a listener: errors in upstream's shape, and whether writes are taken."""

import logging

from aiohttp import web
from aiohttp.typedefs import Handler

from agent_api.errors import AgentError, BadRequestError, MachineUnservableError, NotReadyError, OverloadedError
from contrail_service.pages import json_response

log = logging.getLogger(__name__)

UPSTREAM_JSON = "application/json; charset=UTF-8"
"""How upstream's agent names the type of its answers."""

_STATUS: dict[type[AgentError], int] = {BadRequestError: 400, NotReadyError: 503, OverloadedError: 503}
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers the agent's errors with their status, and a path or method that no route has with upstream's 404."""
    if request.match_info.http_exception is not None:
        raise web.HTTPNotFound(text="Unknown Request")
    try:
        return await handler(request)
    except AgentError as error:
        if isinstance(error, MachineUnservableError):
            log.error("%s %s: %s", request.method, request.path, error)  # noqa: TRY400 - the message says all
        return json_response({"error": str(error)}, status=_STATUS.get(type(error), 500))


@web.middleware
async def refuse_writes(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses what changes something: for a listener at which anybody can knock."""
    if request.method in _WRITES:
        raise web.HTTPForbidden(text="tcp-writes is off: POST, PUT and DELETE are taken at the Unix socket alone")
    return await handler(request)


async def name_charset(_request: web.Request, response: web.StreamResponse) -> None:
    """Has every page of JSON name its type as upstream's agent does."""
    if response.headers.get("Content-Type") == "application/json":
        response.headers["Content-Type"] = UPSTREAM_JSON
