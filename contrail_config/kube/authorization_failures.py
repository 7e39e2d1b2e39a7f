"""Authorization failures that persist: rights that were revoked or never granted.

A single 403 proves little: a server that starts rejects everybody for a moment, and an RBAC change reaches several API
servers one after the other. A failure counts once it was repeated for a while, until it is no longer repeated.

Only the authorizer's own failures count. An object may be rejected with 403 for another reason (its namespace
terminates, a quota is exceeded), and only the message tells the two apart:
`User "..." cannot list resource "pods" in API group ""`.
"""

import asyncio
import re
from typing import NamedTuple

PERSISTENT_AFTER = 10.0
"""Seconds between a first failure and a later one of the same kind."""

FORGOTTEN_AFTER = 60.0
"""Seconds without a failure; longer than any pause between two attempts."""

_MESSAGE = re.compile(r'User ".*" cannot (?P<right>\w+ resource "[^"]*" in API group "[^"]*").*', re.DOTALL)


class _Failure(NamedTuple):
    """Times of the first and last failure, on the event loop's clock, and the last message."""

    first: float
    last: float
    message: str


class AuthorizationFailures:
    """The authorization failures of one client, by the right that is missing."""

    def __init__(self) -> None:
        self._failures: dict[str, _Failure] = {}

    def record(self, message: str) -> None:
        """Records the message of a 403 response; those that the authorizer did not write are ignored."""
        if (found := _MESSAGE.search(message)) is None:
            return
        now = asyncio.get_running_loop().time()
        self._expire(now)
        before = self._failures.get(found["right"])
        self._failures[found["right"]] = _Failure(before.first if before else now, now, found[0])

    def persistent(self) -> list[str]:
        """Returns the server's messages for the rights that have been missing for a while."""
        self._expire(asyncio.get_running_loop().time())
        return [
            failure.message for failure in self._failures.values() if failure.last - failure.first >= PERSISTENT_AFTER
        ]

    def _expire(self, now: float) -> None:
        self._failures = {
            right: failure for right, failure in self._failures.items() if now - failure.last < FORGOTTEN_AFTER
        }
