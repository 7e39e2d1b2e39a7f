"""The pages that whoever composes the process serves beside the agent's, as `/openapi.json` describes them."""

from collections.abc import Sequence

import msgspec
from aiohttp import web

from agent_api.pages.operation import Operation


class Health(msgspec.Struct):
    """That the process is alive, and in which version."""

    healthy: bool
    version: str


class Readiness(msgspec.Struct):
    """Whether the process can do its work, and if not, why."""

    ready: bool
    reasons: list[str]


def status_operations(pages: Sequence[web.RouteDef]) -> list[Operation]:
    """Returns those of the pages that are known, with what they answer."""
    described = []
    for page in pages:
        if page.path == "/healthz":
            described.append(Operation("GET", page.path, "Whether it is alive.", page.handler, answer=Health))
        elif page.path == "/readyz":
            described.append(
                Operation("GET", page.path, "Whether it is ready.", page.handler, answer=Readiness, errors=(503,))
            )
        elif page.path == "/metrics":
            described.append(Operation("GET", page.path, "Metrics.", page.handler, answer=str, media="text/plain"))
    return described
