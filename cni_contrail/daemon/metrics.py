"""Prometheus metrics of the daemon."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

_BUCKETS = (0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120)  # seconds
_COMMANDS = ("ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION")
_WHOLE = "whole"
_QUEUE = "queue"
_PHASES = (_QUEUE, "list", "make", "connect", "plug", "remove", "tell", _WHOLE)
_NO_LIMIT: AbstractContextManager[object] = nullcontext()


class MeasuredCall:
    """One queued call: its current phases, which are read when metrics are scraped, and those that ended.

    `ended` are names, beginnings and seconds of phases. `began`, `responded` and these beginnings are those of
    `time.perf_counter`; a call that has not responded by itself has no `responded`.
    """

    def __init__(self, command: str) -> None:
        self.command = command
        self.running = [_WHOLE, _QUEUE]
        self.ended: list[tuple[str, float, float]] = []
        self.began = time.perf_counter()
        self.responded: float | None = None

    def begin(self) -> None:
        """Ends the phase `queue`."""
        self.end_phase(_QUEUE, self.began)

    def end_phase(self, name: str, started: float) -> None:
        """Ends the phase that began last."""
        self.ended.append((name, started, time.perf_counter() - started))
        self.running.pop()

    def phase(self, name: str, limit: AbstractContextManager[object] = _NO_LIMIT) -> AbstractContextManager[None]:
        """Measures a phase that runs inside `limit`, including the wait for it."""
        return _Phase(self, name, limit)


class _Phase(AbstractContextManager[None]):
    """One phase of one call; a class, since `contextlib.contextmanager` costs more on the path of every call."""

    __slots__ = ("_call", "_limit", "_name", "_started")

    def __init__(self, call: MeasuredCall, name: str, limit: AbstractContextManager[object]) -> None:
        self._call = call
        self._name = name
        self._limit = limit

    def __enter__(self) -> None:
        self._call.running.append(self._name)
        self._started = time.perf_counter()
        self._limit.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limit.__exit__(kind, error, trace)
        self._call.end_phase(self._name, self._started)


class Metrics:
    """Metrics of one daemon; `registry` exposes them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._seconds = Histogram(
            "contrail_cnid_seconds",
            "Duration of calls, whole and by phase.",
            ("command", "phase"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._calls: set[MeasuredCall] = set()
        running = Gauge("contrail_cnid_running", "Running calls by phase.", ("phase",), registry=self.registry)
        for phase in _PHASES:
            running.labels(phase).set_function(functools.partial(self._count_running, phase))
        self._errors = Counter(
            "contrail_cnid_errors", "Failed calls by error code.", ("command", "code"), registry=self.registry
        )
        self._seconds_of = functools.cache(self._seconds.labels)
        self._freed = Counter(
            "contrail_cnid_freed", "Orphaned attachments detached by the sweep.", registry=self.registry
        )
        self._dropped = Counter(
            "contrail_cnid_dropped", "ADDs whose runtime hung up before they began.", registry=self.registry
        )
        self._pending = Gauge(
            "contrail_cnid_pending_deletes", "Notifications that the agent has not received.", registry=self.registry
        )

    def watch_pending(self, count: Callable[[], float]) -> None:
        """Calls `count` for the number of pending notifications at each scrape."""
        self._pending.set_function(count)

    def queued(self, command: str) -> MeasuredCall:
        """Measures a whole call from its acknowledgement on."""
        call = MeasuredCall(command)
        self._calls.add(call)
        return call

    def ended(self, call: MeasuredCall) -> None:
        """Observes the phases of a call that has ended."""
        call.end_phase(_WHOLE, call.began)
        self._calls.discard(call)
        command = _known(call.command)
        for phase, _, seconds in call.ended:
            self._seconds_of(command, phase).observe(seconds)

    def failed(self, command: str, code: int) -> None:
        """Counts a failed call."""
        self._errors.labels(_known(command), str(code)).inc()

    def dropped(self) -> None:
        """Counts an ADD whose runtime hung up before it began."""
        self._dropped.inc()

    def freed(self, number: int) -> None:
        """Counts orphaned attachments that the sweep detached."""
        self._freed.inc(number)

    def _count_running(self, phase: str) -> int:
        # Copied, since calls are added and discarded by other threads; `set.copy` is atomic under the GIL.
        return sum(phase in call.running for call in self._calls.copy())


def _known(command: str) -> str:
    """Bounds the label's values: a request may hold any text as its command."""
    return command if command in _COMMANDS else "other"
