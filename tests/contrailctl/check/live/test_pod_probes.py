"""Commands that let a pod make its probes: what they print, and how they fail."""

from pathlib import Path

import msgspec
import pytest

from contrailctl.check.findings import Fault, Finding
from contrailctl.check.live.check import probe_pod
from contrailctl.check.live.plan import plan_probes
from contrailctl.check.live.wire import Outcome, Probe, Result
from tests.contrailctl.check.live.attached import pod_in

PODS = [pod_in("blue", 1, gateway=False), pod_in("blue", 2, gateway=False)]
PLANNED = plan_probes(PODS)[PODS[0].pod]


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """A command in a pod; what it does is written by each test."""
    return tmp_path / "command"


def write(command: Path, text: str) -> None:
    command.write_text(f"#!/bin/sh\n{text}\n")
    command.chmod(0o755)


async def found(command: Path, text: str, *, limit: float = 20) -> tuple[list[Finding], list[str]]:
    """Findings and notes if the command is this script."""
    write(command, text)
    return await probe_pod(PODS[0], PLANNED, [str(command)], limit=limit)


def printed(*results: Result) -> str:
    return f"cat >/dev/null; echo '{msgspec.json.encode(results).decode()}'"


async def unchecked(command: Path, text: str, *, limit: float = 20) -> str:
    (finding,), notes = await found(command, text, limit=limit)
    assert (finding.node, finding.fault, finding.what) == (
        "node-1",
        Fault.UNCHECKED,
        "probes from temporary pod blue-1",
    )
    assert finding.advice
    assert notes == []
    return finding.found


async def test_probes_are_given_to_the_command_and_its_results_judged(command: Path, tmp_path: Path) -> None:
    answered, silent = Result(Outcome.ANSWERED), Result(Outcome.NOTHING, "timed out")
    text = f'echo "$@" > {tmp_path}/arguments; cat > {tmp_path}/given; {printed(answered, silent)}'
    (finding,), notes = await found(command, text)
    assert (finding.what, finding.found) == ("no answer from pods on node-2 over IPv6", "timed out")
    assert notes == []
    assert (tmp_path / "arguments").read_text() == "contrailctl check probe --output json\n"
    given = msgspec.json.decode((tmp_path / "given").read_bytes(), type=list[Probe])
    assert given == [each.probe for each in PLANNED]


async def test_probes_that_a_pod_may_not_make_are_a_note(command: Path) -> None:
    refused = Result(Outcome.NOT_PERMITTED, "no right")
    findings, notes = await found(command, printed(refused, refused))
    assert findings == []
    assert notes == ["node-1: default-domain:k8s-demo:k8s-blue-pod-network: no right"]


async def test_a_command_that_fails_is_quoted(command: Path) -> None:
    reason = await unchecked(command, "echo 'error: pod not found' >&2; exit 1")
    assert reason == f"{command}: exit status 1: error: pod not found"


async def test_a_command_that_hangs_is_killed(command: Path) -> None:
    assert await unchecked(command, "exec sleep 100", limit=1) == f"{command}: timed out after 1 s"


async def test_results_of_another_release_are_not_judged(command: Path) -> None:
    assert await unchecked(command, printed(Result(Outcome.ANSWERED))) == "1 results of 2 probes"
    assert "exit status 0" in await unchecked(command, """cat >/dev/null; echo '[{"outcome": "unknown"}]'""")
