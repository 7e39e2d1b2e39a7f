"""Prometheus metrics of the datapath. Without a Linux datapath there is only its kind."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from agent_api.datapath.feed import DesiredStateFeed
from agent_api.datapath.kind import Datapath
from agent_api.datapath.refusals import RefusalReason
from agent_api.datapath.reports import DROP_REASONS, REPAIR_KINDS, DatapathReports
from agent_api.datapath.unconnected_ports import Cause
from contrail_config.objects import Refusal


def register_kind(registry: CollectorRegistry, kind: Datapath) -> None:
    """Adds the metric that says the kind of datapath."""
    Gauge("contrail_agent_datapath_kind", "1 for this node's kind.", ["kind"], registry=registry).labels(kind).set(1)


class DatapathMetrics(Collector):
    """Collects the metrics when they are scraped."""

    def __init__(
        self,
        registry: CollectorRegistry,
        feed: DesiredStateFeed,
        reports: DatapathReports,
        refusals: Callable[[], Iterable[Refusal]],
        unconnected: Callable[[], Mapping[Cause, int]],
    ) -> None:
        self._feed = feed
        self._reports = reports
        self._refusals = refusals
        self._unconnected = unconnected
        registry.register(self)

    def describe(self) -> list[Metric]:
        """Returns nothing: names need not be compared with those of other collectors."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yields all metrics; networks and ports are those of the state that was served last."""
        state, report = self._feed.state, self._reports.latest
        problems = 0 if report is None else len(report.problems)
        seconds = 0.0 if report is None else report.seconds
        age = self._reports.age
        yield GaugeMetricFamily("contrail_agent_datapath_networks", "Networks to program.", len(state.networks))
        yield GaugeMetricFamily("contrail_agent_datapath_ports", "Ports to program.", state.port_count)
        yield GaugeMetricFamily("contrail_agent_datapath_remotes", "Endpoints of other nodes.", state.remote_count)
        yield GaugeMetricFamily("contrail_agent_datapath_incomplete", "Incomplete networks.", state.incomplete_count)
        yield GaugeMetricFamily("contrail_agent_datapath_problems", "Networks with a problem.", problems)
        yield GaugeMetricFamily("contrail_agent_datapath_resync_seconds", "Duration of the last resync.", seconds)
        yield GaugeMetricFamily("contrail_agent_datapath_report_age_seconds", "Time since the last report.", age)
        yield CounterMetricFamily("contrail_agent_datapath_repaired", "Repaired objects.", self._reports.repaired)
        unconnected = GaugeMetricFamily(
            "contrail_agent_datapath_unconnected_ports", "Ports that are not connected.", labels=["reason"]
        )
        for cause, number in self._unconnected().items():
            unconnected.add_metric([cause], number)
        yield unconnected
        modules = GaugeMetricFamily(
            "contrail_agent_datapath_missing_modules", "1 for a missing kernel module.", labels=["module"]
        )
        for module in () if report is None else report.missing_modules:
            modules.add_metric([module], 1)
        yield modules
        refused = GaugeMetricFamily(
            "contrail_agent_datapath_refused", "Networks not connected, and subnets without a route.", labels=["reason"]
        )
        for reason, number in sorted(self._counts().items()):
            refused.add_metric([reason], number)
        yield refused
        repairs = CounterMetricFamily(
            "contrail_agent_datapath_repairs", "Repairs of networks, by kind of what was changed.", labels=["kind"]
        )
        for kind in REPAIR_KINDS:
            repairs.add_metric([kind], self._reports.repairs[kind])
        yield repairs
        drops = CounterMetricFamily("contrail_agent_datapath_drops", "Packets dropped.", labels=["reason"])
        for reason in DROP_REASONS:
            drops.add_metric([reason], self._reports.drops[reason])
        yield drops

    def _counts(self) -> Counter[str]:
        """Returns the numbers by reason; reasons of a newer process are counted together."""
        known = {str(reason) for reason in RefusalReason}
        counts = Counter(dict.fromkeys(known, 0))
        counts.update(each.reason if each.reason in known else "other" for each in self._refusals())
        return counts
