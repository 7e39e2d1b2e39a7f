"""Commands that run `contrailctl check node` on nodes: what they print, and how they fail."""

import os
from pathlib import Path

import msgspec
import pytest

from contrailctl.check.findings import Checked, Fault, Finding
from contrailctl.check.node_commands import check_nodes, command_of, kubectl_command

FOUND = Checked(("node-a",), 2, (Finding("node-a", "blue", Fault.MISSING, "neighbour"),), ("node-a: 3 other nodes",))


def script(folder: Path, text: str) -> list[str]:
    file = folder / "command"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return [str(file)]


async def unchecked(command: list[str], *, limit: float = 20) -> str:
    """Returns why a node could not be checked."""
    (checked,) = await check_nodes({"node-a": command}, limit=limit)
    (finding,) = checked.findings
    assert (checked.nodes, checked.networks) == (("node-a",), 0)
    assert (finding.node, finding.fault, finding.what) == ("node-a", Fault.UNCHECKED, "kernel of the node")
    assert finding.advice
    return finding.found


async def test_what_a_node_finds_is_read(tmp_path: Path) -> None:
    command = script(tmp_path, f"echo '{msgspec.json.encode(FOUND).decode()}'; exit 1")
    assert await check_nodes({"node-a": command}, limit=20) == [FOUND]


async def test_a_command_that_fails_is_quoted(tmp_path: Path) -> None:
    command = script(tmp_path, "echo 'contrailctl: agent unreachable' >&2; exit 2")
    assert await unchecked(command) == f"{command[0]}: exit status 2: contrailctl: agent unreachable"


async def test_output_of_another_program_is_cut(tmp_path: Path) -> None:
    reason = await unchecked(script(tmp_path, "yes | head -c 100000"))
    assert len(reason) < 400 + len(str(tmp_path))


async def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    assert await unchecked([missing]) == f"{missing}: No such file or directory"


async def test_a_command_that_hangs_is_killed(tmp_path: Path) -> None:
    command = script(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 100")
    assert await unchecked(command, limit=1) == f"{command[0]}: timed out after 1 s"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_the_operators_command_names_the_node() -> None:
    command = command_of(("ssh", "root@{node}", "contrailctl"), "node-a", probes=False)
    assert command == [
        "ssh", "root@node-a", "contrailctl",
        "check", "node", "--node-name", "node-a", "--output", "json", "--no-probes",
    ]  # fmt: skip


def test_kubectl_runs_in_the_container_of_the_daemon() -> None:
    command = kubectl_command("node-a", "contrail-node-x", "contrail", probes=True, client=("--context", "lab"))
    assert command == [
        "kubectl", "--context", "lab", "exec",
        "--namespace", "contrail", "contrail-node-x", "--container", "cnid", "--",
        "contrailctl", "check", "node", "--node-name", "node-a", "--output", "json",
        "--config", "/etc/contrail-node/cnid.yaml",
    ]  # fmt: skip
