"""Quoting of values in errors: a network configuration of any size leaves short errors and short log lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.node_file import NODE_FILE_VARIABLE
from cni_contrail.plugin import respond
from cni_contrail.quoting import MAX_LISTED, MAX_QUOTED, cut, listed, quoted
from tests.support.plugin import Plugin, PodSandbox

LONG = "é" * 160_000  # 320 KB
SHORT = 2048  # bytes
CONFIG = {"cniVersion": "1.0.0", "name": "contrail-k8s-cni", "type": "contrail-k8s-cni"}
PREVIOUS = {"cniVersion": "1.0.0"}
LONG_VALUES: list[tuple[dict[str, Any], int]] = [
    ({"name": LONG}, 7),
    ({"name": [LONG]}, 6),
    ({"cniVersion": LONG}, 1),
    ({"cniVersion": [LONG]}, 6),
    ({"contrail": LONG}, 7),
    ({"contrail": {LONG: 1}}, 7),
    ({"contrail": {"unknown": LONG}}, 7),
    *(({"contrail": {key: LONG}}, 7) for key in ("mode", "network-name", "nad", "mtu", "parent-interface")),
    *(({"contrail": {key: "/" + LONG}}, 7) for key in ("state-dir", "config-dir", "log-file", "agent-socket")),
    ({"contrail": {"vrouter-ip": "a" * 320_000}}, 7),
    ({"ipam": {"type": LONG}}, 2),
    ({"ipMasq": LONG}, 2),
]


@pytest.mark.parametrize(("changed", "code"), LONG_VALUES, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("command", ["ADD", "DEL", "CHECK"])
def test_errors_and_log_lines_are_short(
    changed: dict[str, Any], code: int, command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = {"state-dir": str(tmp_path), "config-dir": str(tmp_path)}
    (tmp_path / "cni.json").write_text(json.dumps(settings))
    environment = {
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": "c1",
        "CNI_NETNS": "/run/netns/not-there",
        "CNI_IFNAME": "eth0",
        "CNI_PATH": "/opt/cni/bin",
        NODE_FILE_VARIABLE: str(tmp_path / "cni.json"),
    }
    output = respond(environment, lambda: json.dumps({**CONFIG, "prevResult": PREVIOUS, **changed}).encode())
    assert len(output.encoded) < SHORT
    assert len(capfd.readouterr().err.encode()) < SHORT
    if command == "ADD":
        assert output.code == code


def test_a_long_configuration_is_answered_with_its_own_error_by_the_daemon(plugin: Plugin, pod: PodSandbox) -> None:
    for section in (LONG, {"unknown": LONG}):
        document = plugin.config(contrail=section) if isinstance(section, str) else plugin.config(settings=section)
        outcome = plugin.call(plugin.environment("ADD", pod), json.dumps(document, ensure_ascii=False))
        assert "contrail" in outcome.failed(7)


def test_values_are_cut_and_short_ones_are_whole() -> None:
    assert quoted({"a": 1}) == '{"a": 1}'
    assert cut("x" * MAX_QUOTED) == "x" * MAX_QUOTED
    assert cut("x" * (MAX_QUOTED + 1)) == "x" * (MAX_QUOTED - 3) + "..."
    assert len(quoted("x" * 1000)) == MAX_QUOTED


def test_a_list_is_cut_after_some_elements() -> None:
    some = [str(each) for each in range(MAX_LISTED)]
    assert listed(some) == ", ".join(some)
    assert listed([*some, "a", "b"], "; ") == "; ".join([*some, "2 more"])
