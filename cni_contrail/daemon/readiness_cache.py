"""Readiness of the node for `/readyz`: one check at a time, whose result is served for a second.

A check waits for the agent. If every request made one of its own, clients of `/readyz` could occupy all connections
while the agent does not answer, and with them those of the liveness probe.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

ReadinessCheck = Callable[[], str]
"""Returns why the node cannot serve an ADD, or empty if it is ready."""

_MAX_AGE = 1.0  # seconds that a result is served without a new check
_OUTDATED = 10.0  # seconds after which a result that no check replaced says nothing


class _Result(NamedTuple):
    reason: str
    at: float  # of the monotonic clock


class ReadinessCache:
    """The latest result of a check. `reason` is a `ReadinessCheck` itself, which waits for no other request."""

    def __init__(self, check: ReadinessCheck, clock: Callable[[], float] = time.monotonic) -> None:
        self._check = check
        self._clock = clock
        self._checking = threading.Lock()
        self._latest: _Result | None = None

    def reason(self) -> str:
        """Returns the latest result; checks first if that is older than 1 s, unless another request is checking."""
        if self._age() > _MAX_AGE and self._checking.acquire(blocking=False):
            try:
                self._latest = _Result(self._check(), self._clock())
            finally:
                self._checking.release()
        return self._known()

    def _age(self) -> float:
        return float("inf") if self._latest is None else self._clock() - self._latest.at

    def _known(self) -> str:
        if self._latest is None:
            return "readiness: not checked yet"
        if self._age() > _OUTDATED:
            return f"readiness: the check has had no result for {self._age():.0f} s"
        return self._latest.reason
