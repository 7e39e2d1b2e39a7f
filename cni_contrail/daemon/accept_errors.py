"""Handling of accept(2) failures, such as EMFILE: a rate-limited log line, and a pause instead of a busy loop."""

from __future__ import annotations

import threading
import time

from cni_contrail.log import Log

_LOG_INTERVAL = 60.0  # seconds
_PAUSE = 0.05  # seconds until the next try: a connection that ends frees a descriptor


class AcceptErrors:
    """The failures of one listener; `name` is its configuration key."""

    def __init__(self, name: str, log: Log) -> None:
        self._name = name
        self._log = log
        self._next_line = 0.0

    def report(self, error: OSError) -> None:
        """Logs the error, at most once a minute."""
        now = time.monotonic()
        if now >= self._next_line:
            self._next_line = now + _LOG_INTERVAL
            self._log.error(f"{self._name}: cannot accept connections: {error.strerror}")

    def pause(self, stopped: threading.Event) -> None:
        """Returns after a moment, or when `stopped` is set."""
        stopped.wait(_PAUSE)
