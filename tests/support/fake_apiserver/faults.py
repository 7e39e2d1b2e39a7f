"""What can be made to go wrong. Set while the server runs; what is set counts from the next request or event on."""

import asyncio
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.status_errors import StatusError, conflict

_CHANGES = ("update", "patch", "delete")


@dataclass
class Rejection:
    """A failure that is answered to the next requests that it is about, so often."""

    failure: StatusError
    verb: str
    times: int


@dataclass
class Faults:
    """Faults of the server; none are set at first."""

    tokens: set[str] | None = None
    """Bearer tokens that are known, if any is asked for."""

    conflicts: bool = False
    """Every change of an object meets another one's."""

    piece: int | None = None
    """Bodies come in pieces of so many bytes, each sent on its own."""

    cuts: list[int] = field(default_factory=list)
    """After how many bytes the next watches are cut, one after the other."""

    cut_cleanly: bool = False
    """A cut looks like the end of the body, not like a lost connection."""

    repeated: bool = False
    """Watches tell each event twice."""

    swapped: bool = False
    """Watches tell events that come at one moment in the wrong order."""

    silent: bool = False
    """Watches tell nothing, bookmarks neither."""

    gone_as_status: bool = False
    """A watch from too long ago is refused with 410, instead of beginning with it."""

    hung: bool = False
    """Nothing is answered."""

    cut_responses: list[int] = field(default_factory=list)
    """After how many bytes the bodies of the next answers are cut, one after the other."""

    lost_responses: int = 0
    """So many changes are made without being answered."""

    lost_responses_to: list[str] = field(default_factory=list)
    """Plurals of kinds of which the next changes, one for each, are made without being answered."""

    nonsense: bytes | None = None
    """What is answered to lists and watches."""

    rejections: list[Rejection] = field(default_factory=list)
    rejected: int = 0

    def reject(
        self,
        code: int,
        *,
        verb: str = "",
        times: int = 1,
        retry_after: int | None = None,
        message: str = "refused on purpose",
    ) -> None:
        """Answers with an error; `verb` as in authorization rules (get, list, watch, create, update, patch, delete)."""
        reason = {410: "Expired", 429: "TooManyRequests", 500: "InternalError"}.get(code, "")
        failure = StatusError(code, reason, message, retry_after=retry_after)
        self.rejections.append(Rejection(failure, verb, times))

    async def delay(self, verb: str, kind: Kind, name: str) -> None:
        """Returns when a request is to be dealt with; `name` is empty for a new object."""
        if self.hung:
            await asyncio.Event().wait()

    def check_rejections(self, verb: str) -> None:
        """Raises what is to be answered to this request."""
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
        """Loses the connection on which a change was asked for."""
        if kind.plural in self.lost_responses_to:
            self.lost_responses_to.remove(kind.plural)
        elif self.lost_responses:
            self.lost_responses -= 1
        else:
            return
        if request.transport is not None:
            request.transport.close()
