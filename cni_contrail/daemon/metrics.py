"""What the daemon counts, for Prometheus."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_BUCKETS = (0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120)  # seconds
_COMMANDS = ("ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION")
_WHOLE = "whole"


class Metrics:
    """Counters of one daemon; `registry` has them for exposition."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "contrail_cnid_seconds",
            "Duration of calls, whole and by phase.",
            ("command", "phase"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._running = Gauge(
            "contrail_cnid_running", "Calls that are under way, by phase.", ("phase",), registry=self.registry
        )
        self._errors = Counter(
            "contrail_cnid_errors", "Calls that failed.", ("command", "code"), registry=self.registry
        )
        self._upkeep = Counter(
            "contrail_cnid_freed", "Attachments freed whose sandbox was gone.", registry=self.registry
        )
        self._pending = Gauge(
            "contrail_cnid_pending_deletes", "Notifications that the agent still has to get.", registry=self.registry
        )

    def watch_pending(self, count: Callable[[], float]) -> None:
        """Has the queue counted whenever it is asked for."""
        self._pending.set_function(count)

    def call(self, command: str) -> contextlib.AbstractContextManager[None]:
        """Measures a whole call."""
        return self.phase(command, _WHOLE)

    @contextlib.contextmanager
    def phase(self, command: str, phase: str) -> Iterator[None]:
        """Measures a phase of a call."""
        running = self._running.labels(phase)
        running.inc()
        begun = time.perf_counter()
        try:
            yield
        finally:
            running.dec()
            self._seconds.labels(_known(command), phase).observe(time.perf_counter() - begun)

    def failed(self, command: str, code: int) -> None:
        """Counts an error."""
        self._errors.labels(_known(command), str(code)).inc()

    def freed(self, number: int) -> None:
        """Counts what upkeep freed."""
        self._upkeep.inc(number)


def _known(command: str) -> str:
    return command if command in _COMMANDS else "other"
