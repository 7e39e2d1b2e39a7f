"""Injected faults. They can be set while the server runs and apply from the next request or event on."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.status_errors import StatusError, conflict

_CHANGES = ("update", "patch", "delete")


@dataclass
class Rejection:
    """An error for the next matching requests, `times` times."""

    failure: StatusError
    verb: str
    times: int


@dataclass
class Faults:
    """Faults of the server; none is set at first."""

    tokens: set[str] | None = None
    """Accepted bearer tokens; None accepts every request."""

    conflicts: bool = False
    """Every update, patch and delete fails with a conflict."""

    piece: int | None = None
    """Bodies are sent in separate pieces of so many bytes."""

    cuts: list[int] = field(default_factory=list)
    """Number of bytes after which each of the next watches is cut."""

    cut_cleanly: bool = False
    """A cut ends the body properly instead of closing the connection."""

    repeated: bool = False
    """Watches send each event twice."""

    swapped: bool = False
    """Watches send simultaneous events in reverse order."""

    silent: bool = False
    """Watches send nothing, not even bookmarks."""

    gone_as_status: bool = False
    """A watch from an expired revision is rejected with status 410 instead of an error event."""

    hung: bool = False
    """No request is answered."""

    cut_responses: list[int] = field(default_factory=list)
    """Number of bytes after which the body of each of the next responses is cut."""

    lost_responses: int = 0
    """The next so many changes are made without a response."""

    lost_responses_to: list[str] = field(default_factory=list)
    """Plurals of kinds; one change per entry is made without a response."""

    nonsense: bytes | None = None
    """Body of every response instead of the real one."""

    rejections: list[Rejection] = field(default_factory=list)
    rejected: int = 0

    before_answer: Callable[[str], None] | None = None
    """Called with the verb of each request before it is answered."""

    def reject(
        self,
        code: int,
        *,
        verb: str = "",
        times: int = 1,
        retry_after: int | None = None,
        message: str = "rejected on purpose",
    ) -> None:
        """Answers with an error; `verb` as in authorization rules (get, list, watch, create, update, patch, delete)."""
        reason = {410: "Expired", 429: "TooManyRequests", 500: "InternalError"}.get(code, "")
        failure = StatusError(code, reason, message, retry_after=retry_after)
        self.rejections.append(Rejection(failure, verb, times))

    async def delay(self, verb: str, kind: Kind, name: str) -> None:
        """Delays a request; `name` is empty for a new object. Subclasses override it."""
        if self.hung:
            await asyncio.Event().wait()

    def check_rejections(self, verb: str) -> None:
        """Raises the error for this request, if one is set."""
        if self.before_answer is not None:
            self.before_answer(verb)
        for rejection in self.rejections:
            if rejection.verb in ("", verb):
                rejection.times -= 1
                if not rejection.times:
                    self.rejections.remove(rejection)
                self.rejected += 1
                raise rejection.failure

    def check_conflict(self, verb: str, kind: Kind, name: str) -> None:
        if self.conflicts and verb in _CHANGES:
            raise conflict(kind, name)

    def lose_response(self, request: web.Request, kind: Kind) -> None:
        """Closes the connection of a completed change instead of responding."""
        if kind.plural in self.lost_responses_to:
            self.lost_responses_to.remove(kind.plural)
        elif self.lost_responses:
            self.lost_responses -= 1
        else:
            return
        if request.transport is not None:
            request.transport.close()
