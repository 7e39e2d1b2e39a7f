"""Access to the manager's listener: the names by which it is reached, and an optional token for the API.

The token protects the API, which has the data of the cluster. The files of the page have none: a browser gets them
without a token, and asks for it.
"""

import hmac
import logging
import socket
from collections.abc import Iterable

from aiohttp import web

from contrail_config.kube.configuration.value_source import FileValue
from contrail_config.kube.errors import KubeConfigurationError
from contrail_service.pages import Handler, json_response
from manager.configuration import ManagerConfiguration
from manager.web.host_names import HostNames

log = logging.getLogger(__name__)

_SCHEME = "bearer"


class Access:
    """Who may read. Without `token`, everybody who reaches the listener."""

    def __init__(self, hosts: HostNames, token: FileValue | None = None) -> None:
        self._hosts = hosts
        self._token = token

    def by_host(self, routes: Iterable[web.RouteDef]) -> list[web.RouteDef]:
        """Returns the routes, which answer 421 to requests for other hosts."""
        return [_with_handler(route, self._checks_host(route.handler)) for route in routes]

    def by_host_and_token(self, routes: Iterable[web.RouteDef]) -> list[web.RouteDef]:
        """Returns the routes, which also answer 401 to requests without the token, if there is one."""
        return self.by_host([_with_handler(route, self._checks_token(route.handler)) for route in routes])

    def _checks_host(self, handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            # Not request.host, which looks up this machine's name if the header is missing. Every browser sends it,
            # and probes with HTTP/1.0 do not.
            host = request.headers.get("Host")
            if host is not None and not self._hosts.allow(host):
                raise web.HTTPMisdirectedRequest(text="this host name is not in api-access.allowed-hosts")
            return await handler(request)

        return handle

    def _checks_token(self, handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            if self._token is None or _matches(request, await _content(self._token)):
                return await handler(request)
            response = json_response({"error": "a token is required: Authorization: Bearer TOKEN"}, status=401)
            response.headers["WWW-Authenticate"] = "Bearer"
            return response

        return handle


def access_of(configuration: ManagerConfiguration) -> Access:
    """Returns what the configuration allows; this machine's own names are always allowed."""
    settings = configuration.api_access
    hosts = HostNames([socket.gethostname(), configuration.node, *settings.allowed_hosts])
    token = None if settings.token_file is None else FileValue(settings.token_file, "api-access.token-file")
    return Access(hosts, token)


async def _content(token: FileValue) -> bytes:
    """Returns the token. An unreadable or empty file never means that everybody may read."""
    try:
        content = (await token.read()).strip()
    except KubeConfigurationError as error:
        log.error("%s", error)  # noqa: TRY400 - the message is complete
        raise web.HTTPServiceUnavailable(text="the token cannot be read, see the log") from error
    if not content:
        raise web.HTTPServiceUnavailable(text="the file of the token is empty")
    return content


def _matches(request: web.Request, token: bytes) -> bool:
    scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
    sent_bytes = sent.strip().encode(errors="surrogateescape")
    return scheme.lower() == _SCHEME and hmac.compare_digest(sent_bytes, token)


def _with_handler(route: web.RouteDef, handler: Handler) -> web.RouteDef:
    return web.RouteDef(route.method, route.path, handler, route.kwargs)
