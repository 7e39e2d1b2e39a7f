"""What the daemon counts, for Prometheus."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_BUCKETS = (0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120)  # seconds
_COMMANDS = ("ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION")
_WHOLE = "whole"
_NO_GATE: AbstractContextManager[object] = nullcontext()


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
        # A child is looked up once: that takes longer than counting.
        self._running_in = functools.cache(self._running.labels)
        self._seconds_of = functools.cache(self._seconds.labels)
        self._upkeep = Counter(
            "contrail_cnid_freed", "Attachments freed whose sandbox was gone.", registry=self.registry
        )
        self._pending = Gauge(
            "contrail_cnid_pending_deletes", "Notifications that the agent still has to get.", registry=self.registry
        )

    def watch_pending(self, count: Callable[[], float]) -> None:
        """Has the queue counted whenever it is asked for."""
        self._pending.set_function(count)

    def call(self, command: str) -> AbstractContextManager[None]:
        """Measures a whole call."""
        return self.phase(command, _WHOLE, _NO_GATE)

    def phase(self, command: str, phase: str, gate: AbstractContextManager[object]) -> AbstractContextManager[None]:
        """Measures a phase of a call, which is within the gate; the waiting for it is measured too."""
        return _Phase(self._running_in(phase), self._seconds_of(_known(command), phase), gate)

    def failed(self, command: str, code: int) -> None:
        """Counts an error."""
        self._errors.labels(_known(command), str(code)).inc()

    def freed(self, number: int) -> None:
        """Counts what upkeep freed."""
        self._upkeep.inc(number)


class _Phase(AbstractContextManager[None]):
    """One phase of one call."""

    __slots__ = ("_begun", "_gate", "_running", "_seconds")

    def __init__(self, running: Gauge, seconds: Histogram, gate: AbstractContextManager[object]) -> None:
        self._running = running
        self._seconds = seconds
        self._gate = gate

    def __enter__(self) -> None:
        self._running.inc()
        self._begun = time.perf_counter()
        self._gate.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate.__exit__(kind, error, trace)
        self._running.dec()
        self._seconds.observe(time.perf_counter() - self._begun)


def _known(command: str) -> str:
    return command if command in _COMMANDS else "other"
