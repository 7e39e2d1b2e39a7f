"""Middlewares of a listener: errors in the Contrail vrouter agent's form, and the rejection of writes."""

import asyncio
import logging

from aiohttp import web
from aiohttp.typedefs import Handler

from agent_api.errors import (
    AgentError,
    BadRequestError,
    ConflictError,
    NotReadyError,
    OverloadedError,
    UnservableVirtualMachineError,
)
from agent_api.tcp_peer import is_foreign_user
from contrail_service.pages import JSON_CONTENT_TYPE, json_response

log = logging.getLogger(__name__)

_STATUS: dict[type[AgentError], int] = {
    BadRequestError: 400,
    ConflictError: 409,
    NotReadyError: 503,
    OverloadedError: 503,
}
_WRITE_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@web.middleware
async def translate_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers AgentErrors with their status, and unknown paths and methods with the vrouter agent's 404."""
    # aiohttp resolves an unknown path or method to a handler that raises 404 or 405; the vrouter agent knows only 404.
    if request.match_info.http_exception is not None:
        raise web.HTTPNotFound(text="Unknown Request")
    try:
        return await handler(request)
    except AgentError as error:
        if isinstance(error, UnservableVirtualMachineError):
            log.error("%s %s: %s", request.method, request.path, error)  # noqa: TRY400 - the message is complete
        return json_response({"error": str(error)}, status=_STATUS.get(type(error), 500))


@web.middleware
async def reject_writes(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Rejects requests that write, for a listener that untrusted clients can reach."""
    if request.method in _WRITE_METHODS:
        raise web.HTTPForbidden(text="tcp-writes is off: POST, PUT and DELETE are accepted only on the Unix socket")
    return await handler(request)


@web.middleware
async def reject_foreign_peers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Rejects requests that write if their peer is a process of this host that does not run as root."""
    if request.method in _WRITE_METHODS and request.transport is not None:
        peer, own = (request.transport.get_extra_info(name) for name in ("peername", "sockname"))
        if await asyncio.to_thread(is_foreign_user, peer, own):
            raise web.HTTPForbidden(text="POST, PUT and DELETE over TCP are accepted only from processes of root")
    return await handler(request)


async def add_json_charset(_request: web.Request, response: web.StreamResponse) -> None:
    """Appends the charset to the content type of every JSON response, as the vrouter agent does."""
    if response.headers.get("Content-Type") == "application/json":
        response.headers["Content-Type"] = JSON_CONTENT_TYPE
