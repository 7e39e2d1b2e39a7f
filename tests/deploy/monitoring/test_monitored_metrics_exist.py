"""`deploy/monitoring`: alerts and dashboard read metrics and labels that the programs serve."""

import re
from pathlib import Path

import pytest

from tests.support.monitoring import MONITORS, TARGET_LABELS, Matcher, Query, endpoints, panels, queries, queries_of
from tests.support.served_metrics import Metrics, served_metrics

pytestmark = pytest.mark.xdist_group("served metrics")  # the programs are started once

OF_KUBE_STATE_METRICS: Metrics = {
    "kube_daemonset_status_number_unavailable": {"namespace": {"contrail"}, "daemonset": {"contrail-node"}}
}
"""Metrics that a program of the Kubernetes project has of all DaemonSets."""

ENDPOINTS = {endpoint["port"] for monitor in MONITORS for endpoint in endpoints(monitor)}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Metrics:
    metrics = served_metrics(tmp_path_factory.mktemp("served"))
    return metrics | {"up": {"endpoint": ENDPOINTS}} | OF_KUBE_STATE_METRICS


def labels_of(query: Query, served: Metrics) -> set[str]:
    return {label for metric in query.metrics for label in served[metric]} | TARGET_LABELS


def test_every_metric_is_served(served: Metrics) -> None:
    unknown = {query.title: query.metrics - served.keys() for query in queries() if query.metrics - served.keys()}
    assert not unknown
    assert all(query.metrics for query in queries())


def test_the_dashboard_shows_every_metric_of_ours(served: Metrics) -> None:
    shown = {metric for panel in panels() for query in queries_of(panel) for metric in query.metrics}
    ours = {family(metric) for metric in served if metric.startswith("contrail_")}
    assert ours
    assert ours - {family(metric) for metric in shown} == set()


def family(sample: str) -> str:
    """The metric that a sample belongs to, whatever its type."""
    return re.sub(r"_(total|bucket|sum|count|created)$", "", sample)


def test_every_label_is_one_of_its_metric(served: Metrics) -> None:
    assert not [each for query in queries() for each in query.matchers if not has_label(each, served)]
    assert not {query.title: unknown for query in queries() if (unknown := query.grouping - labels_of(query, served))}


def has_label(matcher: Matcher, served: Metrics) -> bool:
    return matcher.label in served[matcher.metric] or matcher.label in TARGET_LABELS


def test_every_value_of_a_label_occurs(served: Metrics) -> None:
    assert not [each for query in queries() for each in query.matchers if not selects_something(each, served)]


def selects_something(matcher: Matcher, served: Metrics) -> bool:
    """Whether a sample has each value that the matcher demands."""
    values = served[matcher.metric].get(matcher.label)
    if values is None or matcher.operator in ("!=", "!~"):
        return True
    wanted = matcher.value.split("|") if matcher.operator == "=~" else [re.escape(matcher.value)]
    return all(any(re.fullmatch(pattern, value) for value in values) for pattern in wanted)


def test_every_shown_label_is_left_by_the_query(served: Metrics) -> None:
    for query in queries():
        left = query.grouping or labels_of(query, served)
        assert query.shown_labels <= left, query


def test_a_metric_that_is_not_served_is_found(served: Metrics, tmp_path: Path) -> None:
    query = Query("typo", 'sum by (node) (rate(contrail_manager_podz{state="Waiting"}[5m])) > 0 or up == 0', "")
    assert query.metrics - served.keys() == {"contrail_manager_podz"}
    assert query.matchers == [Matcher("contrail_manager_podz", "state", "=", "Waiting")]
    assert query.grouping == {"node"}
