"""Agent and daemon of neighbouring releases: what one does not know of the other's messages changes nothing."""

import json
from typing import Any

import pytest

from agent_api.datapath.report import DatapathReport, parse_report
from cni_contrail.datapath.desired import Masquerade, Routed, RoutedPort, Underlay
from cni_contrail.datapath.fabric_routes import RefusedRoute
from cni_contrail.datapath.filter_rules import Drops
from cni_contrail.datapath.node_outcome import NodeOutcome
from cni_contrail.follower.agent import Changes, Report
from cni_contrail.follower.desired_state import DesiredState, read_desired_state
from cni_contrail.link.counters import Counters

PORT: dict[str, Any] = {"link": "tap1", "mac": "02:00:00:00:00:01", "addresses": ["10.7.0.2", "fd07::2"]}
ROUTED_PORT: dict[str, Any] = {**PORT, "link": "tap0", "gateways": ["10.8.0.1"]}
FIRST_RELEASE: dict[str, Any] = {
    "version": "v1",
    "networks": [
        {"vni": 5, "mtu": 1450, "gateways": ["10.7.0.1/24"], "ports": [PORT], "snat": True, "forwarding": False}
    ],
    "routed": [ROUTED_PORT],
    "masquerade": {"excluded": ["10.8.0.0/24"]},
}
"""Without the keys that came later: subnets with a route, isolation at index 0, other nodes, MTUs of ports."""

REMOTE = {"mac": "02:00:00:00:00:09", "addresses": ["10.7.0.9"], "tunnel": "192.0.2.2"}
THIS_RELEASE: dict[str, Any] = FIRST_RELEASE | {
    "networks": [
        {
            **each,
            "ports": [{**PORT, "mtu": 1450}],
            "remotes": [REMOTE],
            "remote-blocks": [],
            "complete": True,
            "routed": True,
            "largest-mtu": 1500,
        }
        for each in FIRST_RELEASE["networks"]
    ],
    "routed": [{**ROUTED_PORT, "mtu": 1450, "network": 7}],
    "fabric-subnets": ["10.64.0.0/12"],
    "tunnel": {"addresses": ["192.0.2.1"], "port": 4789},
    "nodes": [{"name": "node-2", "addresses": ["192.0.2.2"]}],
    "routed-network": {
        "vni": 1,
        "mtu": 1450,
        "addresses": ["10.8.0.254"],
        "own-blocks": ["10.8.0.0/26"],
        "remotes": [{"cidr": "10.8.0.64/26", "tunnel": "192.0.2.2"}],
        "complete": True,
    },
}
REPORT = Report(
    "v1",
    Changes(2, 1, {"filter": 1}, {5: 1}),
    NodeOutcome.nothing()._replace(
        missing={5: frozenset({"tap1"})},
        problems={5: "no bridge; kernel module vxlan is missing: create tunnel: Operation not supported"},
        unconnected={5},
        drops={0: Drops(1, 0, tunnel=2), 5: Drops(3, 4, mtu=5, ports={"tap1": 3})},
        refused=[RefusedRoute(5, "10.7.0.0/24", "node-route", "10.0.0.0/8", 0)],
    ),
    0.25,
    tunnel_mtu=1450,
    daemon_version="1.3.0",
    counters={0: {"tap0": Counters(1, 2, 3, 4)}, 5: {}},
).document()
MAPS = ("missing", "problems", "drops", "ports", "repairs", "repaired-networks", "counters", "0", "5")
"""Maps, whose keys are no names."""


def test_a_daemon_ignores_what_only_a_newer_agent_knows() -> None:
    assert _read(_with_more_keys(THIS_RELEASE)) == _read(THIS_RELEASE)


def test_a_daemon_reads_the_state_of_an_older_agent() -> None:
    found = _read(FIRST_RELEASE)
    port = RoutedPort("tap0", PORT["mac"], tuple(PORT["addresses"]), ("10.8.0.1",), network=0)
    assert found.routed == Routed((port,), Masquerade(("10.8.0.0/24",)))
    assert found.fabric_subnets == ()
    assert found.underlay == Underlay((), 4789, frozenset())
    assert [(each.vni, each.snat, each.remotes) for each in found.networks] == [(5, True, ())]


def test_a_daemon_reads_the_mtu_of_each_port() -> None:
    found = _read(THIS_RELEASE)
    assert [port.mtu for each in found.networks for port in each.ports] == [1450]
    assert [(port.mtu, port.network) for port in found.routed.ports] == [(1450, 7)]
    older = _read(FIRST_RELEASE)
    assert [port.mtu for port in older.networks[0].ports] == [port.mtu for port in older.routed.ports] == [0]


def test_an_agent_ignores_what_only_a_newer_daemon_reports() -> None:
    assert _parsed(_with_more_keys(REPORT)) == _parsed(REPORT)


@pytest.mark.parametrize(
    "key",
    [
        "problems",
        "missing",
        "drops",
        "refused",
        "repairs",
        "repaired-networks",
        "unconnected",
        "tunnel-mtu",
        "missing-modules",
        "daemon-version",
        "counters",
    ],
)
def test_an_agent_reads_the_report_of_an_older_daemon(key: str) -> None:
    parsed = _parsed({name: value for name, value in REPORT.items() if name != key})
    assert not getattr(parsed, key.replace("-", "_"))
    assert (parsed.version, parsed.changes, parsed.repaired) == ("v1", 2, 1)


def test_an_agent_reads_drops_of_an_older_daemon() -> None:
    parsed = _parsed(REPORT | {"drops": {"5": {"spoofing": 3, "broadcast": 4}}})
    assert (parsed.drops["5"].spoofing, parsed.drops["5"].tunnel, parsed.drops["5"].mtu) == (3, 0, 0)


def _with_more_keys(value: Any, key: str = "") -> Any:
    """Returns the value with one more key in each object."""
    if isinstance(value, list):
        return [_with_more_keys(each) for each in value]
    if not isinstance(value, dict):
        return value
    more = {} if key in MAPS else {"of-the-next-release": {"a": [1]}}
    return {name: _with_more_keys(each, name) for name, each in value.items()} | more


def _read(state: dict[str, Any]) -> DesiredState:
    return read_desired_state(json.dumps(state).encode())


def _parsed(report: dict[str, Any]) -> DatapathReport:
    return parse_report(json.dumps(report).encode())
