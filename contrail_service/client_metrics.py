"""Prometheus metrics of a process's Kubernetes client: requests, their latency, and the ages of watches.

Of several watches of a kind the one that has been silent longest counts, and none that has ended.

The labels take few values, whatever tenants write: methods, status codes, and the kinds that the process watches.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class ClientMetrics:
    """Observer of a Kubernetes client, with the names of its metrics. `clock` returns monotonic seconds."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        requests: str,
        request_seconds: str,
        watch_age: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._watches: set[_Watch] = set()
        description = "Requests to the API server; status is none if there was no response"
        self._requests = Counter(requests, description, ["method", "status"], registry=registry)
        self._seconds = Histogram(
            request_seconds,
            "Seconds until the response of the API server began",
            ["method"],
            buckets=_BUCKETS,
            registry=registry,
        )
        registry.register(_WatchAges(watch_age, self._ages))

    def responded(self, method: str, status: str, seconds: float) -> None:
        """Counts a request."""
        self._requests.labels(method, status).inc()
        self._seconds.labels(method).observe(seconds)

    @contextlib.contextmanager
    def watching(self, resource: str) -> Iterator[Callable[[], None]]:
        """Observes a watch inside the context; yields what to call when the API server sent something for it."""
        watch = _Watch(resource, self._clock())

        def heard() -> None:
            watch.heard = self._clock()

        self._watches.add(watch)
        try:
            yield heard
        finally:
            self._watches.discard(watch)

    def _ages(self) -> dict[str, float]:
        """Returns the age of each kind's watch that has been silent longest."""
        now, ages = self._clock(), dict[str, float]()
        for watch in self._watches:
            ages[watch.resource] = max(ages.get(watch.resource, 0.0), now - watch.heard)
        return ages


class _Watch:
    """A watch, and when the API server last sent something for it, or when it began."""

    __slots__ = ("heard", "resource")

    def __init__(self, resource: str, began: float) -> None:
        self.resource = resource
        self.heard = began


class _WatchAges(Collector):
    def __init__(self, name: str, ages: Callable[[], dict[str, float]]) -> None:
        self._name = name
        self._ages = ages

    def collect(self) -> Iterator[GaugeMetricFamily]:
        description = "Seconds since the API server last sent something for the most silent watch, bookmarks included"
        family = GaugeMetricFamily(self._name, description, labels=["resource"])
        for resource, age in self._ages().items():
            family.add_metric([resource], age)
        yield family
