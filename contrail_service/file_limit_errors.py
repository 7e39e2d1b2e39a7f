"""Exception handler of a service's event loop: rate-limits the errors of a process that has no files left.

asyncio retries to accept connections every second, and reports each failure with a traceback, a thousand at a time: the
log would fill the disk in minutes.
"""

import asyncio
import errno
import logging
from typing import Any

LOG_INTERVAL = 60.0
"""Seconds between two log lines on files that ran out."""

log = logging.getLogger(__name__)


class FileLimitErrors:
    """Logs errors of exhausted files at most once per `LOG_INTERVAL`, and all other errors as asyncio does."""

    def __init__(self) -> None:
        self._next_line = 0.0  # time of the loop

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handles an error that no task raises; see `loop.set_exception_handler`."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in {errno.EMFILE, errno.ENFILE}:
            loop.default_exception_handler(context)
        elif loop.time() >= self._next_line:
            self._next_line = loop.time() + LOG_INTERVAL
            log.error("new connections wait: %s; further errors are not logged for %d s", error, LOG_INTERVAL)
