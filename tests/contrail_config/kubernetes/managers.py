"""What the tests of several managers share: stores on one server, and a server on which writers meet each other."""

import asyncio
import random
from typing import Protocol

from aiohttp import web

from contrail_config.kubernetes.store import KubernetesStore
from tests.support.fake_apiserver.failures import StatusError
from tests.support.fake_apiserver.faults import Faults
from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.kept_in_cluster import BLOCK_KIND

_WRITES = ("create", "update", "delete")


class OpenManager(Protocol):
    """Opens one more store."""

    async def __call__(self, *, flush_interval: float = 0.0) -> KubernetesStore: ...


class Contention(Faults):
    """Every other write, by chance, meets another one first."""

    def __init__(self, chance: random.Random | None = None) -> None:
        super().__init__()
        self._chance = chance or random.Random(0)

    def check_refusals(self, verb: str) -> None:
        super().check_refusals(verb)
        if verb in _WRITES and self._chance.random() < 0.5:
            self.refused += 1
            raise StatusError(409, "Conflict", "the object has been modified, on purpose")


class Dawdling(Contention):
    """The same, and each write of addresses takes its time, by chance."""

    async def hold_up(self, verb: str, kind: Kind, name: str) -> None:
        await super().hold_up(verb, kind, name)
        if verb in _WRITES and kind == BLOCK_KIND:
            await asyncio.sleep(self._chance.choice([0.0, 0.001, 0.01, 0.03]))


class Mute(Dawdling):
    """The same, and what was done to addresses is not answered, by chance, and mostly refused if it is repeated."""

    def lose_answer(self, request: web.Request, kind: Kind) -> None:
        if kind == BLOCK_KIND and self._chance.random() < 0.3:
            self.lost_answers = 1
            if self._chance.random() < 0.7:
                self.refuse(403, verb="update")
        super().lose_answer(request, kind)


def writes(server: FakeApiServer) -> list[str]:
    """The writes that came, as `verb plural`."""
    return [request for request in server.requests if request.split()[0] in (*_WRITES, "patch")]
