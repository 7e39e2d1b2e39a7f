"""Prometheus metrics of the datapath. Without a Linux datapath there is only its kind."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from agent_api.datapath.feed import DesiredStateFeed
from agent_api.datapath.kind import Datapath
from agent_api.datapath.reports import DROP_REASONS, DatapathReports


def register_kind(registry: CollectorRegistry, kind: Datapath) -> None:
    """Adds the metric that says the kind of datapath."""
    Gauge("contrail_agent_datapath_kind", "1 for this node's kind.", ["kind"], registry=registry).labels(kind).set(1)


class DatapathMetrics(Collector):
    """Collects the metrics when they are scraped."""

    def __init__(self, registry: CollectorRegistry, feed: DesiredStateFeed, reports: DatapathReports) -> None:
        self._feed = feed
        self._reports = reports
        registry.register(self)

    def describe(self) -> list[Metric]:
        """Returns nothing: names need not be compared with those of other collectors."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yields all metrics; networks and ports are those of the state that was served last."""
        state, report = self._feed.state, self._reports.latest
        missing = 0 if report is None else sum(map(len, report.missing.values()))
        problems = len(self._feed.refused) + (0 if report is None else len(report.problems))
        seconds = 0.0 if report is None else report.seconds
        age = self._reports.age
        yield GaugeMetricFamily("contrail_agent_datapath_networks", "Networks to program.", len(state.networks))
        yield GaugeMetricFamily("contrail_agent_datapath_ports", "Ports to program.", state.port_count)
        yield GaugeMetricFamily("contrail_agent_datapath_remotes", "Endpoints of other nodes.", state.remote_count)
        yield GaugeMetricFamily("contrail_agent_datapath_incomplete", "Incomplete networks.", state.incomplete_count)
        yield GaugeMetricFamily("contrail_agent_datapath_missing_ports", "Ports without their link.", missing)
        yield GaugeMetricFamily("contrail_agent_datapath_problems", "Networks with a problem.", problems)
        yield GaugeMetricFamily("contrail_agent_datapath_resync_seconds", "Duration of the last resync.", seconds)
        yield GaugeMetricFamily("contrail_agent_datapath_report_age_seconds", "Time since the last report.", age)
        yield CounterMetricFamily("contrail_agent_datapath_repaired", "Repaired objects.", self._reports.repaired)
        drops = CounterMetricFamily("contrail_agent_datapath_drops", "Packets dropped by filters.", labels=["reason"])
        for reason in DROP_REASONS:
            drops.add_metric([reason], self._reports.drops[reason])
        yield drops
