"""`contrailctl check`: its output, and the errors that keep it from checking, which end with exit status 2."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from cni_contrail.datapath.desired import Routed, Underlay
from cni_contrail.follower.desired_state import DesiredState
from cni_contrail.inspection.difference import MISSING, STALE, Difference
from contrailctl.check.findings import Checked, Fault, Finding, output_of
from contrailctl.check.node import confirmed
from contrailctl.check.node_agent import NodeDatapath
from contrailctl.datapath import DatapathStatus
from tests.support.cluster_processes import plain_kubeconfig
from tests.support.contrailctl_command import Run
from tests.support.free_port import free_port

MISSING_ENTRY, STALE_ENTRY = Difference(5, MISSING, "neighbour"), Difference(5, STALE, "route")
DATAPATH = NodeDatapath(
    DesiredState("v", (), Routed((), None), Underlay((), 4789, frozenset()), ()), DatapathStatus(networks={})
)


def looks(*found: Iterable[Difference]) -> tuple[list[Difference], list[float]]:
    """Returns what is confirmed if this is found at each look, and the pauses between the looks."""
    left: Iterator[Iterable[Difference]] = iter(found)
    pauses: list[float] = []
    _, differences = confirmed(lambda: DATAPATH, lambda _: list(next(left)), pause=pauses.append)
    assert next(left, None) is None
    return differences, pauses


def test_a_node_without_differences_is_read_once() -> None:
    assert looks([]) == ([], [])


def test_what_is_gone_at_the_second_look_does_not_count() -> None:
    assert looks([MISSING_ENTRY, STALE_ENTRY], []) == ([], [1.0])
    assert looks([MISSING_ENTRY], [MISSING_ENTRY, Difference(6, MISSING, "bridge")]) == ([MISSING_ENTRY], [1.0])


def test_what_is_stale_counts_after_the_time_that_it_may_stay() -> None:
    both = [MISSING_ENTRY, STALE_ENTRY]
    assert looks(both, both, [MISSING_ENTRY]) == ([MISSING_ENTRY], [1.0, 12.0])
    assert looks(both, both, both) == (both, [1.0, 12.0])


def test_the_table_has_all_findings_and_each_advice_once() -> None:
    findings = (
        Finding("node-b", "blue", Fault.WRONG, "bridge br0", "down", "repair it"),
        Finding("node-a", "", Fault.STOPPED, "nothing programs the datapath", advice="start it"),
        Finding("node-a", "blue", Fault.MISSING, "neighbour 10.1.0.3", advice="repair it"),
    )
    output = output_of(Checked(("node-a", "node-b"), 1, findings, ("node-a: 3 other nodes",)))
    assert output.status == 1
    assert output.text.splitlines() == [
        "NODE     NETWORK   FAULT     OBJECT",
        "node-a   -         stopped   nothing programs the datapath",
        "node-a   blue      missing   neighbour 10.1.0.3",
        "node-b   blue      wrong     bridge br0 (found: down)",
        "",
        "stopped: start it",
        "missing, wrong: repair it",
        "",
        "Not checked: node-a: 3 other nodes",
        "2 nodes, 1 network: 3 problems",
    ]


def test_nothing_found_is_one_line() -> None:
    output = output_of(Checked(("node-a",), 2, ()))
    assert (output.text, output.status) == ("1 node, 2 networks: no problem found", 0)


def test_probes_of_temporary_pods_are_counted() -> None:
    output = output_of(Checked(("node-a",), 2, (), probes=7))
    assert output.text == "1 node, 2 networks, 7 probes of temporary pods: no problem found"


async def test_an_api_server_that_is_unreachable_ends_with_status_2(contrailctl: Run, tmp_path: Path) -> None:
    kubeconfig = plain_kubeconfig(tmp_path, f"http://127.0.0.1:{free_port()}")
    ended = await contrailctl("check", "connectivity", "--kubeconfig", str(kubeconfig), "--timeout", "0.5")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("contrailctl: ")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("command", ["ssh 'root@{node} contrailctl", "", " "])
async def test_a_node_command_that_is_malformed_ends_with_status_2(contrailctl: Run, command: str) -> None:
    ended = await contrailctl("check", "connectivity", "--node-command", command)
    assert (ended.status, ended.out) == (2, "")
    assert "argument --node-command: " in ended.err


async def test_a_kubeconfig_that_does_not_exist_ends_with_status_2(contrailctl: Run, tmp_path: Path) -> None:
    ended = await contrailctl("check", "connectivity", "--kubeconfig", str(tmp_path / "none"))
    assert (ended.status, ended.out) == (2, "")
    assert str(tmp_path / "none") in ended.err


async def test_an_agent_that_is_unreachable_ends_with_status_2(
    contrailctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_file = tmp_path / "cni.json"
    node_file.write_text(f'{{"agent-socket": "{tmp_path}/agent.sock"}}')
    monkeypatch.setenv("CONTRAIL_CNI_CONFIG", str(node_file))
    ended = await contrailctl("check", "node")
    assert (ended.status, ended.out) == (2, "")
    assert f"agent unreachable at unix:{tmp_path}/agent.sock" in ended.err


async def test_a_node_whose_settings_name_no_agent_ends_with_status_2(
    contrailctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTRAIL_CNI_CONFIG", str(tmp_path / "none.json"))
    ended = await contrailctl("check", "node")
    assert (ended.status, ended.out) == (2, "")
    assert f"agent-socket is not set in {tmp_path}/none.json" in ended.err


async def test_settings_of_the_daemon_come_before_those_of_the_node(
    contrailctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_file, daemon_file = tmp_path / "cni.json", tmp_path / "cnid.yaml"
    node_file.write_text(f'{{"agent-socket": "{tmp_path}/agent.sock"}}')
    monkeypatch.setenv("CONTRAIL_CNI_CONFIG", str(node_file))
    daemon_file.write_text("log-level: debug")
    ended = await contrailctl("check", "node", "--config", str(daemon_file))
    assert f"agent unreachable at unix:{tmp_path}/agent.sock" in ended.err
    daemon_file.write_text(f"agent-socket: {tmp_path}/other.sock")
    ended = await contrailctl("check", "node", "--config", str(daemon_file))
    assert f"agent unreachable at unix:{tmp_path}/other.sock" in ended.err


async def test_a_daemon_configuration_that_is_invalid_ends_with_status_2(contrailctl: Run, tmp_path: Path) -> None:
    file = tmp_path / "cnid.yaml"
    file.write_text("unknown: 1")
    ended = await contrailctl("check", "node", "--config", str(file))
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"contrailctl: --config: {file}: unknown key")


async def test_only_root_checks_a_node(contrailctl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    ended = await contrailctl("check", "node")
    assert (ended.status, ended.err) == (2, "contrailctl: check node: must run as root, on the node\n")
