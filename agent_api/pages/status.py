"""The pages that whoever composes the process serves beside the agent's, as `/openapi.json` describes them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

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


class Page(NamedTuple):
    """What a page is, and what it answers."""

    summary: str
    answer: Any
    media: str = "application/json"
    errors: tuple[int, ...] = ()


_KNOWN = {
    "/healthz": Page("Whether it is alive.", Health),
    "/readyz": Page("Whether it is ready.", Readiness, errors=(503,)),
    "/metrics": Page("Metrics of Prometheus.", str, media="text/plain"),
}


def status_operations(pages: Sequence[web.RouteDef]) -> list[Operation]:
    """Returns those of the pages that are known, with what they answer."""
    return [
        Operation(page.method, page.path, known.summary, page.handler, known.errors, known.answer, media=known.media)
        for page in pages
        if (known := _KNOWN.get(page.path)) is not None
    ]
