"""The pages that whoever composes the process serves beside the agent's, as `/openapi.json` describes them."""

from collections.abc import Sequence
from functools import partial

import msgspec
from aiohttp import web

from agent_api.handlers.operation import Operation


class Health(msgspec.Struct):
    """That the process is alive, and in which version."""

    healthy: bool
    version: str


class Readiness(msgspec.Struct):
    """Whether the process can do its work, and if not, why."""

    ready: bool
    reasons: list[str]


_KNOWN = {
    "/healthz": partial(Operation, "GET", "/healthz", "Whether it is alive.", answer=Health),
    "/readyz": partial(Operation, "GET", "/readyz", "Whether it is ready.", answer=Readiness, unready=Readiness),
    "/metrics": partial(Operation, "GET", "/metrics", "Metrics of Prometheus.", answer=str, media="text/plain"),
}


def status_operations(pages: Sequence[web.RouteDef]) -> list[Operation]:
    """Returns those of the pages that are known, with what they answer."""
    return [_KNOWN[page.path](handle=page.handler) for page in pages if page.path in _KNOWN]
