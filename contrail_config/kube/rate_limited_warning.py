"""A trouble that lasts, told in the log when it begins, seldom while it goes on, and when it is over.

What is tried again every two seconds would else fill the log of a standby with one line, for as long as the server is
away. The words may change meanwhile (refused, no answer in time): that is the same trouble, told in its newest words.
"""

import asyncio
import logging

REPEATED_EVERY = 60.0
"""Seconds, at least, between two lines of one trouble."""

log = logging.getLogger(__name__)


class RateLimitedWarning:
    """About `what`. Counts time on the event loop's clock."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._begun: float | None = None
        self._told = 0.0

    def go_on(self, words: str) -> None:
        """The trouble is there, or still there."""
        now = asyncio.get_running_loop().time()
        if self._begun is None:
            self._begun = now
        elif now - self._told < REPEATED_EVERY:
            return
        self._told = now
        log.warning("%s: %s", self._what, words)

    def end(self) -> None:
        """There is none, or none any more."""
        if self._begun is not None:
            lasted = asyncio.get_running_loop().time() - self._begun
            log.info("%s: well again after %.0f s", self._what, lasted)
            self._begun = None
