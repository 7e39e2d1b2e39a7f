"""Faults of the double's HTTP side, set while it runs."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.contrail_api.api_errors import ApiError


@dataclass
class Rejection:
    """Answers the next `times` requests that match with an error."""

    failure: ApiError
    matches: str
    times: int


@dataclass
class Faults:
    """`latency` is in seconds. Requests match by `METHOD /path`, of which a part is enough."""

    latency: float = 0.0
    hung: bool = False
    rejections: list[Rejection] = field(default_factory=list)
    reset_before_write: list[str] = field(default_factory=list)
    reset_after_write: list[str] = field(default_factory=list)
    before_request: Callable[[str], None] | None = None
    after_write: Callable[[str], None] | None = None
    """Called with each request that changed something, before it is answered."""

    def reject(
        self, status: int, text: str, *, matches: str = "", times: int = 1, headers: dict[str, str] | None = None
    ) -> None:
        """Answers the next requests with an error, before anything is done."""
        self.rejections.append(Rejection(ApiError(status, text, headers=headers), matches, times))

    async def before(self, request: web.Request) -> None:
        """Delays, rejects or cuts off a request before anything is done."""
        target = f"{request.method} {request.path}"
        if self.before_request is not None:
            self.before_request(target)
        if self.hung:
            await asyncio.Event().wait()
        if self.latency:
            await asyncio.sleep(self.latency)
        for rejection in self.rejections:
            if rejection.matches in target:
                rejection.times -= 1
                if not rejection.times:
                    self.rejections.remove(rejection)
                raise rejection.failure
        _reset(request, target, self.reset_before_write)

    def after(self, request: web.Request) -> None:
        """Cuts off a request whose effect is written."""
        target = f"{request.method} {request.path}"
        if self.after_write is not None and request.method != "GET":
            self.after_write(target)
        _reset(request, target, self.reset_after_write)


def _reset(request: web.Request, target: str, patterns: list[str]) -> None:
    for pattern in patterns:
        if pattern in target:
            patterns.remove(pattern)
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError
