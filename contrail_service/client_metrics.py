"""Prometheus metrics of a process's Kubernetes client: requests, their latency, and the age of each watch.

The labels take few values, whatever tenants write: methods, status codes, and the kinds that the process watches.
"""

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
        self._heard: dict[str, float] = {}
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

    def heard(self, resource: str) -> None:
        """Notes that the API server sent something for a watch of the resource."""
        self._heard[resource] = self._clock()

    def _ages(self) -> dict[str, float]:
        now = self._clock()
        return {resource: now - heard for resource, heard in self._heard.items()}


class _WatchAges(Collector):
    def __init__(self, name: str, ages: Callable[[], dict[str, float]]) -> None:
        self._name = name
        self._ages = ages

    def collect(self) -> Iterator[GaugeMetricFamily]:
        description = "Seconds since the API server last sent something for a watch, bookmarks included"
        family = GaugeMetricFamily(self._name, description, labels=["resource"])
        for resource, age in self._ages().items():
            family.add_metric([resource], age)
        yield family
