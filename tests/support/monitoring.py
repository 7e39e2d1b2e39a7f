"""`deploy/monitoring`: alerts, the queries of the dashboard, and what both read of each metric."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.support.applied_manifests import documents
from tests.support.documentation import ROOT

MONITORING = ROOT / "deploy" / "monitoring"
DASHBOARD = MONITORING / "grafana" / "contrail.json"
(_RULES,) = documents(MONITORING / "alerts.yaml")
_SCRAPED = documents(MONITORING / "monitors.yaml")
SERVICES = [item for item in _SCRAPED if item["kind"] == "Service"]
MONITORS = [item for item in _SCRAPED if item["kind"] != "Service"]
ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in _RULES["spec"]["groups"] for rule in group["rules"]
}

TARGET_LABELS = frozenset({"namespace", "pod", "container", "endpoint", "job", "instance", "node"})
"""Labels that the Prometheus operator adds to each series of a pod, and `node` of our monitors."""

_WORDS = frozenset(
    {"absent", "and", "by", "count", "group_left", "histogram_quantile", "increase", "max", "min", "on", "or", "rate"}
    | {"offset", "sum", "topk", "unless", "without", "le"}
)
_STRING = r'"(?:[^"\\]|\\.)*"'
_SELECTOR = re.compile(rf"\b([a-z_][a-z0-9_]*)\s*{{((?:[^{{}}\"]|{_STRING})*)}}")
_MATCHER = re.compile(rf"(\w+)\s*(=~|!~|!=|=)\s*({_STRING})")
_GROUPING = re.compile(r"\b(?:by|on|without|group_left)\s*\(([^)]*)\)")


class Matcher(NamedTuple):
    """A condition on a label of a metric."""

    metric: str
    label: str
    operator: str
    value: str


class Query(NamedTuple):
    """A PromQL expression; `legend` is a template with `$labels.NAME` or `{{NAME}}`."""

    title: str
    expression: str
    legend: str

    @property
    def metrics(self) -> set[str]:
        """Names of the metrics that it reads."""
        text = _SELECTOR.sub(r"\1", self.expression)
        text = _GROUPING.sub("", re.sub(rf"\[[^\]]*\]|{_STRING}", "", text))
        return set(re.findall(r"(?<![\w.$])[a-z_][a-z0-9_]*", text)) - _WORDS

    @property
    def matchers(self) -> list[Matcher]:
        """Conditions on labels."""
        return [
            Matcher(metric, label, operator, json.loads(value))
            for metric, conditions in _SELECTOR.findall(self.expression)
            for label, operator, value in _MATCHER.findall(conditions)
        ]

    @property
    def grouping(self) -> set[str]:
        """Labels by which it aggregates."""
        return {label.strip() for labels in _GROUPING.findall(self.expression) for label in labels.split(",")}

    @property
    def shown_labels(self) -> set[str]:
        """Labels that its legend shows."""
        return set(re.findall(r"\$labels\.(\w+)", self.legend) + re.findall(r"\{\{\s*(\w+)\s*\}\}", self.legend))


def queries() -> Iterator[Query]:
    """The expressions of alerts and dashboard."""
    for name, rule in ALERTS.items():
        yield Query(name, rule["expr"], rule["annotations"]["summary"])
    for panel in panels():
        yield from queries_of(panel)


def queries_of(panel: dict[str, Any]) -> Iterator[Query]:
    """The expressions of a panel, with values for the variables of the dashboard."""
    for target in panel["targets"]:
        expression = target["expr"].replace("$__rate_interval", "5m").replace("$node", ".*")
        yield Query(panel["title"], expression, target["legendFormat"])


def dashboard() -> dict[str, Any]:
    """What Grafana imports."""
    loaded: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return loaded


def panels() -> list[dict[str, Any]]:
    """The panels of the dashboard, without rows."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def endpoints(monitor: dict[str, Any]) -> list[dict[str, Any]]:
    """What a ServiceMonitor or PodMonitor scrapes of each pod."""
    found: list[dict[str, Any]] = monitor["spec"][
        "endpoints" if monitor["kind"] == "ServiceMonitor" else "podMetricsEndpoints"
    ]
    return found


def rows() -> list[str]:
    """The titles of the dashboard's rows, in order."""
    return [panel["title"] for panel in dashboard()["panels"] if panel["type"] == "row"]


def write_rules(file: Path) -> Path:
    """Writes the alerts as Prometheus reads them, without the object around them."""
    file.write_text(yaml.safe_dump(_RULES["spec"]))
    return file


def run_promtool(*arguments: str | Path) -> tuple[int, str]:
    """Exit status and output of `promtool`."""
    folder = subprocess.run([ROOT / "scripts" / "promtool"], check=True, capture_output=True, text=True).stdout.strip()
    outcome = subprocess.run([f"{folder}/promtool", *arguments], capture_output=True, text=True, timeout=60)
    return outcome.returncode, outcome.stdout + outcome.stderr
