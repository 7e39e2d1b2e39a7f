"""What the server's authorizer keeps refusing: rights that were revoked, or never given.

One refusal says little: a server that comes up refuses everybody for a moment, and a change of rights reaches several
servers one after the other. So one counts when it was repeated for a while, and no longer when it is not repeated.

An object may be refused with the same status for a reason of its own: its namespace ends, a quota is used up. The
authorizer is told from those by its words, `User "..." cannot list resource "pods" in API group ""`, since nothing else
in its answer says that it was the one.
"""

import asyncio
import re
from typing import NamedTuple

LASTING = 10.0
"""Seconds between a first refusal and a later one."""

FORGOTTEN_AFTER = 60.0
"""Seconds without one: more than any pause between two tries."""

_WORDS = re.compile(r'User ".*" cannot (?P<what>\w+ resource "[^"]*" in API group "[^"]*").*', re.DOTALL)


class _Refused(NamedTuple):
    """When it was refused first and last, on the event loop's clock, and the last words."""

    first: float
    last: float
    words: str


class AuthorizationFailures:
    """What is refused to one client."""

    def __init__(self) -> None:
        self._refused: dict[str, _Refused] = {}

    def note(self, message: str) -> None:
        """The server refused with this message."""
        if (found := _WORDS.search(message)) is None:
            return
        now = asyncio.get_running_loop().time()
        self._forget(now)
        before = self._refused.get(found["what"])
        self._refused[found["what"]] = _Refused(before.first if before else now, now, found[0])

    def lasting(self) -> list[str]:
        """What has been refused for a while, in the server's words."""
        self._forget(asyncio.get_running_loop().time())
        return [refused.words for refused in self._refused.values() if refused.last - refused.first >= LASTING]

    def _forget(self, now: float) -> None:
        self._refused = {
            what: refused for what, refused in self._refused.items() if now - refused.last < FORGOTTEN_AFTER
        }
