"""Status pages of every process: `/healthz`, `/readyz` and `/metrics`; and errors as JSON on all pages.

`/healthz` proves only that the event loop runs, and returns the version: a process that waits for a peer is healthy.
`/readyz` returns whether the process can do its work, and why not; also what it cannot do for single objects while it
does the rest: such a reason leaves it ready, as one object of a tenant must not stop what waits for readiness.
"""

import importlib.metadata
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

HEALTH_PATHS = frozenset({"/healthz", "/readyz"})

JSON_CONTENT_TYPE = "application/json; charset=UTF-8"
"""Content type of JSON, spelled as by the Contrail vrouter agent."""

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Routes = Sequence[web.RouteDef]
ReadinessCheck = Callable[[], list[str]]
"""Returns the reasons why the process is not ready, none if it is."""


def _nothing() -> list[str]:
    return []


def json_response(content: object, *, status: int = 200) -> web.Response:
    """Returns a JSON response; msgspec structs are encoded as they define."""
    return web.Response(body=msgspec.json.encode(content), status=status, content_type="application/json")


def status_routes(
    readiness: ReadinessCheck,
    registry: CollectorRegistry,
    *,
    single_faults: Callable[[], list[str]] = _nothing,
    details: Mapping[str, str] | None = None,
) -> list[web.RouteDef]:
    """Returns the routes `/healthz`, `/readyz` (503 with reasons while not ready) and `/metrics`.

    `single_faults` returns reasons that concern single objects, with which the process stays ready. `details` are
    further keys of `/readyz`.
    """
    version = importlib.metadata.version("contrail-multinet")

    async def healthz(_request: web.Request) -> web.Response:
        return json_response({"healthy": True, "version": version})

    async def readyz(_request: web.Request) -> web.Response:
        unready = readiness()
        content = {"ready": not unready, "reasons": [*unready, *single_faults()], **(details or {})}
        return json_response(content, status=503 if unready else 200)

    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": "text/plain; version=0.0.4"})

    return [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)]


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Responds to errors with `{"error": ...}`: HTTP errors with their status, a bug with 500 and without its trace."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return json_response({"error": error.text or error.reason}, status=error.status)
    except Exception:
        log.exception("%s %s: internal error", request.method, request.path)
        return json_response({"error": "internal error, see the log"}, status=500)
