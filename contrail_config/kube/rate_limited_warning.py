"""Rate-limited warning: one log line when a problem starts, one per minute while it lasts, one when it is over.

A standby that retries every 2 s would otherwise fill its log while the server is down. The text of the problem may
change (connection refused, timed out): it is still the same problem, and the next line shows the newest text.
"""

import asyncio
import logging

INTERVAL = 60.0
"""Minimum seconds between two lines about one problem."""

log = logging.getLogger(__name__)


class RateLimitedWarning:
    """Warning about one `subject`. Measures time on the event loop's clock."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._began: float | None = None
        self._logged = 0.0

    def warn(self, problem: str) -> None:
        """Reports that the problem exists; logs it unless it was logged within the interval."""
        now = asyncio.get_running_loop().time()
        if self._began is None:
            self._began = now
        elif now - self._logged < INTERVAL:
            return
        self._logged = now
        log.warning("%s: %s", self._subject, problem)

    def clear(self) -> None:
        """Reports that there is no problem; logs the recovery if there was one."""
        if self._began is not None:
            lasted = asyncio.get_running_loop().time() - self._began
            log.info("%s: recovered after %.0f s", self._subject, lasted)
            self._began = None
