"""A node's report passes on what the node installer says of conflicts and errors."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_api.node.reporter import NodeReporter
from cni_contrail.installer.report import INSTALL, Report, Reporter
from cni_contrail.log import Log
from tests.agent_api.conftest import WaitForSync
from tests.agent_api.node.conftest import VERSIONS, RecordedReports
from tests.support.fake_clock import FakeClock
from tests.support.served_agent import ServedAgent

CONFLICT = "/etc/cni/net.d/05-other.conflist: sorts before 10-contrail.conflist"
ERROR = "/opt/cni/bin/contrail-k8s-cni: cannot write: No space left on device"


@pytest.fixture(autouse=True)
async def listed(wait_for_sync: WaitForSync) -> None:
    """The agent has listed its VirtualMachines."""
    await wait_for_sync()


@pytest.fixture
def reporter(served: ServedAgent, reports: RecordedReports, clock: FakeClock, tmp_path: Path) -> NodeReporter:
    file = str(tmp_path / "installer.json")
    return NodeReporter(served.agent, reports, versions=VERSIONS, installer_report=file, clock=clock)


async def test_conflicts_and_errors_are_reported_until_they_are_gone(
    reporter: NodeReporter, reports: RecordedReports, tmp_path: Path
) -> None:
    installer = Reporter(str(tmp_path), Log())
    await reporter.report()
    for said in (Report(INSTALL, errors=(ERROR,), conflicts=(CONFLICT,)), Report(INSTALL, done=True)):
        installer.report(said)
        await reporter.report()
    assert [(each.conflicts, each.last_errors) for each in reports.written] == [
        ((), ()),
        ((CONFLICT,), (ERROR,)),
        ((), ()),
    ]


async def test_another_agent_is_named_beside_a_conflict(
    reporter: NodeReporter, reports: RecordedReports, tmp_path: Path
) -> None:
    Reporter(str(tmp_path), Log()).report(Report(INSTALL, done=True, conflicts=(CONFLICT,)))
    reports.other.append("another")
    await reporter.report()
    await reporter.report()
    assert reports.written[-1].conflicts == ("another agent reports for this node: another", CONFLICT)


@pytest.mark.parametrize(
    "written",
    [{}, {"version": 1, "since": "2026-01-01"}],
    ids=["without a version", "with keys of a newer one"],
)
async def test_a_report_of_another_release_is_understood(
    reporter: NodeReporter, reports: RecordedReports, tmp_path: Path, written: dict[str, object]
) -> None:
    report = {"action": "install", "done": False, "errors": [ERROR], "conflicts": [CONFLICT]}
    (tmp_path / "installer.json").write_text(json.dumps(written | report))
    await reporter.report()
    assert (reports.written[-1].conflicts, reports.written[-1].last_errors) == ((CONFLICT,), (ERROR,))


@pytest.mark.parametrize(
    ("write", "error"),
    [
        (lambda path: path.write_bytes(b"{"), "Input data was truncated"),
        (lambda path: path.write_bytes(b'{"conflicts": [1]}'), "Expected `str`, got `int` - at `$.conflicts[0]`"),
        (lambda path: path.write_bytes(b'{"version": 2}'), "has version 2, this release reads version 1"),
        (os.mkdir, "Is a directory"),
    ],
)
async def test_a_report_that_cannot_be_read_is_logged(
    reporter: NodeReporter,
    reports: RecordedReports,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    write: Callable[[Path], object],
    error: str,
) -> None:
    write(tmp_path / "installer.json")
    await reporter.report()
    assert reports.written[-1].conflicts == ()
    assert f"report of the installer: {tmp_path}/installer.json: {error}" in caplog.text


async def test_texts_that_cannot_be_sent_are_cut_and_replaced(
    reporter: NodeReporter, reports: RecordedReports, tmp_path: Path
) -> None:
    conflicts = tuple(f"{number} \udcff {'x' * 1000}" for number in range(20))
    Reporter(str(tmp_path), Log("/dev/null")).report(Report(INSTALL, conflicts=conflicts))
    await reporter.report()
    assert [(len(each), each[:4]) for each in reports.written[-1].conflicts] == [(256, f"{n} ? ") for n in range(8)]
