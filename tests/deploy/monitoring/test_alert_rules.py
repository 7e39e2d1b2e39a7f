"""`deploy/monitoring/alerts.yaml`, as Prometheus evaluates it: each alert fires when it should, and not before."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.support.monitoring import ALERTS, queries, run_promtool, write_rules

NODE = 'container="agent",node="n1"'
_API = "contrail_{}_api_requests_total"
Series = Mapping[str, str]


class Example(NamedTuple):
    """`fires` are series, by minute, with which the alert has `labels` and `summary` after `minutes`, and not before.

    With each of `quiet` there is no alert at that time, with each of `also` the same one.
    """

    fires: Series
    minutes: int
    labels: Mapping[str, str]
    summary: str
    quiet: tuple[Series, ...]
    also: tuple[Series, ...] = ()


def agent_gauge(metric: str, labels: str = "") -> str:
    return f"{metric}{{{NODE}{',' if labels else ''}{labels}}}"


AGENT = {"container": "agent", "node": "n1"}
CNID = 'container="cnid",node="n1"'
SLICES = agent_gauge("contrail_agent_watch_age_seconds", 'resource="networkslices"')
OF_SERVER, OF_CONTRAIL = _API.format("manager"), _API.format("manager_contrail")
MANAGER = 'container="manager",node="n1"'
USED, FREE = (f"contrail_manager_network_addresses_{each}" for each in ("used", "free"))
BLUE, OTHER = (f'network="{name}",family="ipv4"' for name in ("a:b:blue", "other"))
LONGEST_WAIT = "contrail_manager_longest_wait_seconds"
DROPS = "contrail_agent_datapath_drops_total"
ERRORS = "contrail_cnid_errors_total"
UNAVAILABLE = 'kube_daemonset_status_number_unavailable{namespace="contrail",daemonset="contrail-node"}'
EXAMPLES = {
    "ContrailTargetDown": Example(
        {'up{endpoint="cnid-metrics",container="cnid",node="n1"}': "1 0x6"},
        6,
        {"endpoint": "cnid-metrics", "container": "cnid", "node": "n1"},
        "cnid on node n1 cannot be scraped",
        (
            {'up{endpoint="cnid-metrics",container="cnid",node="n1"}': "1 0x3 1x9"},
            {'up{endpoint="metrics",container="other",node="n1"}': "0x9"},
        ),
    ),
    "ContrailNodePodsMissing": Example(
        {UNAVAILABLE: "2x20"},
        15,
        {"namespace": "contrail", "daemonset": "contrail-node"},
        "The pod of contrail-node is not ready on 2 nodes",
        ({UNAVAILABLE: "2x9 0 2x9"}, {UNAVAILABLE.replace("contrail-node", "other"): "2x20"}),
    ),
    "ContrailNodeConflict": Example(
        {f'contrail_manager_node_conflicts{{pod="{pod}"}}': values for pod, values in (("a", "3x9"), ("b", "0x9"))},
        5,
        {},
        "3 nodes report that something takes the place of the plugin or of its agent",
        ({'contrail_manager_node_conflicts{pod="a"}': "0x9"},),
    ),
    "ContrailNoLeader": Example(
        {'contrail_manager_leads{pod="a"}': "1x2 0x9", 'contrail_manager_leads{pod="b"}': "0x12"},
        5,
        {},
        "No manager leads: new pods wait",
        ({'contrail_manager_leads{pod="a"}': "1 1 0x9", 'contrail_manager_leads{pod="b"}': "0x2 1x9"},),
    ),
    "ContrailPodsWaiting": Example(
        {f'{LONGEST_WAIT}{{pod="a"}}': "0+60x20", f'{LONGEST_WAIT}{{pod="b"}}': "0x20"},
        17,
        {},
        "A pod has waited for its interfaces for 17m 0s",
        ({f'{LONGEST_WAIT}{{pod="a"}}': "0+60x9 60+60x9"},),
    ),
    "ContrailStoreWritesFailing": Example(
        {'contrail_manager_queue_failing{queue="pods"}': "2x9"},
        5,
        {"queue": "pods"},
        "The manager fails to process 2 keys of the queue pods",
        ({'contrail_manager_queue_failing{queue="pods"}': "2x3 0x9"},),
    ),
    "ContrailWatchSilent": Example(
        {SLICES: "0+60x9"},
        5,
        {**AGENT, "resource": "networkslices"},
        "agent on node n1 has received nothing for its watch of networkslices for 5m 0s",
        ({SLICES: "60x9"},),
    ),
    "ContrailApiErrors": Example(
        {
            f'{OF_CONTRAIL}{{{MANAGER},status="none"}}': "0+10x30",
            f'{OF_CONTRAIL}{{{MANAGER},status="200"}}': "0+90x30",
            f'{OF_SERVER}{{{MANAGER},status="200"}}': "0+90x30",
        },
        11,
        {"container": "manager", "node": "n1"},
        "10% of the API requests of manager on node n1 fail",
        (
            {
                f'{OF_SERVER}{{{MANAGER},status="409"}}': "0+50x30",
                f'{OF_SERVER}{{{MANAGER},status="503"}}': "0+1x30",
                f'{OF_SERVER}{{{MANAGER},status="200"}}': "0+90x30",
            },
        ),
    ),
    "ContrailInvalidObjects": Example(
        {f'contrail_manager_invalid_objects{{{MANAGER},kind="VirtualNetwork"}}': "1x9"},
        5,
        {"container": "manager", "kind": "VirtualNetwork"},
        "manager skips 1 invalid objects",
        ({agent_gauge("contrail_agent_invalid_objects"): "0x9"},),
    ),
    "ContrailNetworkNearlyFull": Example(
        {f"{USED}{{{BLUE}}}": "240x20", f"{FREE}{{{BLUE}}}": "10x20"},
        10,
        {"network": "a:b:blue", "family": "ipv4"},
        "4% of the ipv4 addresses of network a:b:blue are free",
        (
            {f"{USED}{{{BLUE}}}": "200x20", f"{FREE}{{{BLUE}}}": "50x20"},
            {f"{USED}{{{OTHER}}}": "240x20", f"{FREE}{{{OTHER}}}": "10x20"},
        ),
    ),
    "ContrailDatapathNotReported": Example(
        {agent_gauge("contrail_agent_datapath_report_age_seconds"): "0+60x9"},
        4,
        AGENT,
        "Nothing has programmed the datapath of node n1 for 4m 0s",
        ({agent_gauge("contrail_agent_datapath_report_age_seconds"): "30x9"},),
    ),
    "ContrailDatapathProblems": Example(
        {agent_gauge("contrail_agent_datapath_problems"): "2x9"},
        5,
        AGENT,
        "2 networks of node n1 are not programmed as desired",
        ({agent_gauge("contrail_agent_datapath_problems"): "2x3 0 2x3"},),
    ),
    "ContrailKernelModuleMissing": Example(
        {agent_gauge("contrail_agent_datapath_missing_modules", 'module="vxlan"'): "1x9"},
        2,
        {**AGENT, "module": "vxlan"},
        "The kernel of node n1 lacks the module vxlan",
        ({agent_gauge("contrail_agent_datapath_missing_modules", 'module="vxlan"'): "1 stale"},),
    ),
    "ContrailPortsUnconnected": Example(
        {agent_gauge("contrail_agent_datapath_unconnected_ports", 'reason="missing"'): "1x9"},
        5,
        {**AGENT, "reason": "missing"},
        "1 ports of pods on node n1 are not connected: missing",
        ({agent_gauge("contrail_agent_datapath_unconnected_ports", 'reason="missing"'): "1x2 0x9"},),
    ),
    "ContrailNetworksRefused": Example(
        {agent_gauge("contrail_agent_datapath_refused", 'reason="equal-vni"'): "2x20"},
        15,
        {**AGENT, "reason": "equal-vni"},
        "Node n1 refuses 2 networks or subnets: equal-vni",
        ({agent_gauge("contrail_agent_datapath_refused", 'reason="equal-vni"'): "2x5 0x15"},),
    ),
    "ContrailPacketsDropped": Example(
        {agent_gauge(DROPS, 'reason="spoofing"'): "0+600x30"},
        11,
        {"node": "n1", "reason": "spoofing"},
        "Node n1 drops 10 packets per second: spoofing",
        ({agent_gauge(DROPS, 'reason="spoofing"'): "0+30x30", agent_gauge(DROPS, 'reason="broadcast"'): "0+600x30"},),
    ),
    "ContrailDatapathContested": Example(
        {agent_gauge("contrail_agent_datapath_repaired_total"): "0+10x60"},
        19,
        {"node": "n1"},
        "Another program keeps changing the datapath of node n1",
        ({agent_gauge("contrail_agent_datapath_repaired_total"): "0x20 20x40"},),
    ),
    "ContrailCniErrors": Example(
        {f'{ERRORS}{{{CNID},command="ADD",code="104"}}': "7x16 8 9 10"},
        18,
        {"node": "n1", "command": "ADD", "code": "104"},
        "ADD fails on node n1 with code 104",
        (
            {f'{ERRORS}{{{CNID},command="ADD",code="104"}}': "7x20"},
            {f'{ERRORS}{{{CNID},command="ADD",code="11"}}': "0+1x20"},
        ),
        also=({f'{ERRORS}{{{CNID},command="ADD",code="104"}}': "_x17 1x9"},),
    ),
    "ContrailPendingDeletes": Example(
        {f"contrail_cnid_pending_deletes{{{CNID}}}": "4x20"},
        15,
        {"container": "cnid", "node": "n1"},
        "4 notifications of deleted pods have not reached the agent of node n1",
        ({f"contrail_cnid_pending_deletes{{{CNID}}}": "4x9 0 4x9"},),
    ),
}


def test_prometheus_accepts_the_rules(tmp_path: Path) -> None:
    status, output = run_promtool("check", "rules", write_rules(tmp_path / "rules.yaml"))
    assert (status, f"{len(ALERTS)} rules found" in output) == (0, True), output


def test_prometheus_accepts_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    rules = [{"record": f"query:{number}", "expr": query.expression} for number, query in enumerate(queries())]
    file = tmp_path / "queries.yaml"
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    status, output = run_promtool("check", "rules", file)
    assert status == 0, output


def test_every_alert_has_an_example() -> None:
    assert EXAMPLES.keys() == ALERTS.keys()


@pytest.mark.parametrize("alert", ALERTS)
def test_the_alert_fires_and_is_quiet(alert: str, tmp_path: Path) -> None:
    example, rule = EXAMPLES[alert], ALERTS[alert]
    annotations = {"summary": example.summary, "runbook_url": rule["annotations"]["runbook_url"]}
    expected = [{"exp_labels": {**example.labels, **rule["labels"]}, "exp_annotations": annotations}]
    tests = [evaluation(alert, example.fires, {example.minutes - 1: [], example.minutes: expected})]
    tests += [evaluation(alert, series, {example.minutes: expected}) for series in example.also]
    tests += [evaluation(alert, series, {example.minutes: []}) for series in example.quiet]
    write_rules(tmp_path / "rules.yaml")
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}))
    status, output = run_promtool("test", "rules", file)
    assert status == 0, output


def evaluation(alert: str, series: Series, expected: Mapping[int, list[dict[str, Any]]]) -> dict[str, Any]:
    """The alerts that are expected, by minute."""
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": alerts} for minute, alerts in expected.items()
        ],
    }
