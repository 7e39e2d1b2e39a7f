"""The manager's Prometheus metrics."""

from collections import Counter as CounterOf
from collections.abc import Callable, Hashable, Iterator, Mapping, Sized
from typing import Protocol, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from contrail_config.kube.work_queue import WorkQueue
from manager.api.types import PodState
from manager.network_metrics import NetworkAddresses

K = TypeVar("K", bound=Hashable)

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class CountedPod(Protocol):
    """The part of a pod's record that is counted."""

    @property
    def first_seen(self) -> float:
        """When its first event arrived, in monotonic seconds."""

    @property
    def state(self) -> PodState | None:
        """State of the pod; None if the source has no such pod."""

    @property
    def interface_count(self) -> int:
        """Number of interfaces that the store holds for it."""

    @property
    def address_count(self) -> int:
        """Number of addresses that the store holds for it."""


class ManagerMetrics:
    """Registers the manager's metrics in `registry`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.pod_seconds = Histogram(
            "contrail_manager_pod_seconds",
            "Seconds from the first event of a pod until its list of interfaces was written",
            buckets=_SECONDS,
            registry=registry,
        )
        self._networks = Gauge("contrail_manager_networks", "Virtual networks", registry=registry)
        self._default_mtu = Gauge(
            "contrail_manager_default_mtu",
            "MTU of new pods in networks for which none is configured",
            registry=registry,
        )
        self._node_conflicts = Gauge(
            "contrail_manager_node_conflicts", "Nodes that report a conflict", registry=registry
        )
        self._watches = Gauge("contrail_manager_watches", "Clients that watch the API", registry=registry)
        self.events = Counter("contrail_manager_events", "Events recorded", ["reason"], registry=registry)
        self._depth = Gauge("contrail_manager_queue_depth", "Objects queued or in work", ["queue"], registry=registry)
        self._failing = Gauge(
            "contrail_manager_queue_failing", "Objects that failed and wait for a retry", ["queue"], registry=registry
        )

    def watch_watches(self, watches: Sized) -> None:
        """Counts the watches of the API at each scrape."""
        self._watches.set_function(lambda: len(watches))

    def watch_node_conflicts(self, nodes: Sized) -> None:
        """Counts the nodes with a conflict at each scrape."""
        self._node_conflicts.set_function(lambda: len(nodes))

    def watch_queue(self, name: str, queue: WorkQueue[K]) -> None:
        """Reads the queue's length and failures at each scrape."""
        self._depth.labels(name).set_function(lambda: len(queue))
        self._failing.labels(name).set_function(lambda: queue.failing)

    def watch_default_mtu(self, mtu: Callable[[], int]) -> None:
        """Reads the default MTU at each scrape."""
        self._default_mtu.set_function(mtu)

    def watch_pods(self, records: Mapping[str, CountedPod], *, clock: Callable[[], float]) -> None:
        """Counts the pods at each scrape. `clock` returns monotonic seconds."""
        self._registry.register(_PodCounts(records, clock))

    def watch_networks(self, networks: Sized, addresses: NetworkAddresses) -> None:
        """Counts the known networks and their addresses at each scrape."""
        self._networks.set_function(lambda: len(networks))
        self._registry.register(addresses)


class _PodCounts(Collector):
    """Counts at each scrape: one pass over the records cannot drift from them, unlike gauges that are kept."""

    def __init__(self, records: Mapping[str, CountedPod], clock: Callable[[], float]) -> None:
        self._records = records
        self._clock = clock

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yields pods by state, the longest wait, and the interfaces and addresses that the store holds."""
        records = self._records.values()
        pods = CounterOf(record.state for record in records)
        by_state = GaugeMetricFamily("contrail_manager_pods", "Pods by state", labels=["state"])
        for state in PodState:
            by_state.add_metric([state], pods[state])
        yield by_state
        now = self._clock()
        waits = (now - record.first_seen for record in records if record.state == PodState.WAITING)
        yield GaugeMetricFamily(
            "contrail_manager_longest_wait_seconds",
            "Seconds since the first event of the pod that has waited longest for its interfaces",
            value=max(waits, default=0.0),
        )
        interfaces, addresses = sum(one.interface_count for one in records), sum(one.address_count for one in records)
        yield GaugeMetricFamily("contrail_manager_interfaces", "Interfaces of all virtual machines", value=interfaces)
        yield GaugeMetricFamily("contrail_manager_addresses", "Addresses of all virtual machines", value=addresses)
