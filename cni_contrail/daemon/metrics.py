"""What the daemon counts, for Prometheus."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_BUCKETS = (0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120)  # seconds
_COMMANDS = ("ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION")
_WHOLE = "whole"
_PHASES = ("list", "make", "plug", "remove", "tell", _WHOLE)
_NO_GATE: AbstractContextManager[object] = nullcontext()


class MeasuredCall:
    """One call: which phases it is in, and the seconds that others took. Looked at only when somebody asks."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.seconds: list[tuple[str, float]] = []

    def phase(self, name: str, gate: AbstractContextManager[object]) -> AbstractContextManager[None]:
        """Measures a phase, which is within the gate; the waiting for it is measured too."""
        return _Phase(self, name, gate)


class _Phase(AbstractContextManager[None]):
    """One phase of one call."""

    __slots__ = ("_begun", "_call", "_gate", "_name")

    def __init__(self, call: MeasuredCall, name: str, gate: AbstractContextManager[object]) -> None:
        self._call = call
        self._name = name
        self._gate = gate

    def __enter__(self) -> None:
        self._call.running.append(self._name)
        self._begun = time.perf_counter()
        self._gate.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate.__exit__(kind, error, trace)
        self._call.seconds.append((self._name, time.perf_counter() - self._begun))
        self._call.running.pop()


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
        self._calls: set[MeasuredCall] = set()
        running = Gauge(
            "contrail_cnid_running", "Calls that are under way, by phase.", ("phase",), registry=self.registry
        )
        for phase in _PHASES:
            running.labels(phase).set_function(functools.partial(self._count_running, phase))
        self._errors = Counter(
            "contrail_cnid_errors", "Calls that failed.", ("command", "code"), registry=self.registry
        )
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

    @contextmanager
    def call(self, command: str) -> Iterator[MeasuredCall]:
        """Measures a whole call, and counts when it has ended."""
        call = MeasuredCall()
        self._calls.add(call)
        try:
            with call.phase(_WHOLE, _NO_GATE):
                yield call
        finally:
            self._calls.discard(call)
            for phase, seconds in call.seconds:
                self._seconds_of(_known(command), phase).observe(seconds)

    def failed(self, command: str, code: int) -> None:
        """Counts an error."""
        self._errors.labels(_known(command), str(code)).inc()

    def freed(self, number: int) -> None:
        """Counts what upkeep freed."""
        self._upkeep.inc(number)

    def _count_running(self, phase: str) -> int:
        return sum(phase in call.running for call in self._calls.copy())


def _known(command: str) -> str:
    return command if command in _COMMANDS else "other"
