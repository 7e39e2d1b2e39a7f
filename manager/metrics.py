"""What the manager measures, for Prometheus."""

from collections import Counter as CounterOf
from collections.abc import Hashable, Iterator, Mapping, Sized
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from manager.api.types import PodState
from manager.controller.pod_record import PodRecord
from manager.work_queue import WorkQueue

K = TypeVar("K", bound=Hashable)

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class ManagerMetrics:
    """The manager's metrics, in a registry of the process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.pod_seconds = Histogram(
            "contrail_manager_pod_seconds",
            "Seconds from the first event of a pod until its list of interfaces was written",
            buckets=_SECONDS,
            registry=registry,
        )
        self._networks = Gauge("contrail_manager_networks", "Virtual networks", registry=registry)
        self.events = Counter("contrail_manager_events", "Events recorded", ["reason"], registry=registry)
        self._depth = Gauge(
            "contrail_manager_queue_depth", "Objects to be worked off now", ["queue"], registry=registry
        )
        self._failing = Gauge(
            "contrail_manager_queue_failing", "Objects that failed and are tried again", ["queue"], registry=registry
        )

    def watch_queue(self, name: str, queue: WorkQueue[K]) -> None:
        """Shows how the queue stands whenever the metrics are read."""
        self._depth.labels(name).set_function(lambda: len(queue))
        self._failing.labels(name).set_function(lambda: queue.failing)

    def watch_pods(self, records: Mapping[str, PodRecord]) -> None:
        """Counts the pods whenever the metrics are read."""
        self._registry.register(_PodCounts(records))

    def watch_networks(self, networks: Sized) -> None:
        """The same for the networks that are known."""
        self._networks.set_function(lambda: len(networks))


class _PodCounts(Collector):
    """Counted when they are read: one pass over the records cannot drift from them, as gauges that are kept can."""

    def __init__(self, records: Mapping[str, PodRecord]) -> None:
        self._records = records

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The pods by state, and what the store holds for them."""
        pods = CounterOf(record.outcome.state for record in self._records.values() if record.pod is not None)
        by_state = GaugeMetricFamily("contrail_manager_pods", "Pods by how far they got", labels=["state"])
        for state in PodState:
            by_state.add_metric([state], pods[state])
        yield by_state
        held = [record.held for record in self._records.values() if record.held is not None]
        interfaces, addresses = sum(len(one.networks) for one in held), sum(one.addresses for one in held)
        yield GaugeMetricFamily("contrail_manager_interfaces", "Interfaces of all machines", value=interfaces)
        yield GaugeMetricFamily("contrail_manager_addresses", "Addresses of all machines", value=addresses)
