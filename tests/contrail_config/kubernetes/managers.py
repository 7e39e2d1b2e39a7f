"""Helpers for tests with several managers: stores on one server, and faults that make their writes conflict."""

import asyncio
import random
from typing import Protocol

from aiohttp import web

from contrail_config.kubernetes.store import KubernetesStore
from tests.support.fake_apiserver.faults import Faults
from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.status_errors import StatusError
from tests.support.fake_clock import FakeClock
from tests.support.stored_objects import BLOCK_KIND

_WRITES = ("create", "update", "delete")


class OpenManager(Protocol):
    """Opens one more store, with the clock that all share or one of its own."""

    async def __call__(self, *, flush_interval: float = 0.0, clock: FakeClock = ...) -> KubernetesStore: ...


class Contention(Faults):
    """Rejects a share of the writes with a conflict, at random."""

    def __init__(self, chance: random.Random | None = None, *, share: float = 0.5) -> None:
        super().__init__()
        self._chance = chance or random.Random(0)
        self._share = share

    def check_rejections(self, verb: str) -> None:
        super().check_rejections(verb)
        if verb in _WRITES and self._chance.random() < self._share:
            self.rejected += 1
            raise StatusError(409, "Conflict", "the object has been modified, on purpose")


class SlowContention(Contention):
    """Also delays each write of an address block, at random."""

    async def delay(self, verb: str, kind: Kind, name: str) -> None:
        await super().delay(verb, kind, name)
        if verb in _WRITES and kind == BLOCK_KIND:
            await asyncio.sleep(self._chance.choice([0.0, 0.001, 0.01, 0.03]))


class LostResponses(SlowContention):
    """Also loses responses to writes of address blocks, at random, and rejects most of their retries."""

    def lose_response(self, request: web.Request, kind: Kind) -> None:
        if kind == BLOCK_KIND and self._chance.random() < 0.3:
            self.lost_responses = 1
            if self._chance.random() < 0.7:
                self.reject(403, verb="update")
        super().lose_response(request, kind)


def writes(server: FakeApiServer) -> list[str]:
    """The write requests so far, as `verb plural`."""
    return [request for request in server.requests if request.split()[0] in (*_WRITES, "patch")]
