"""The installer's report has a version, so that a reader of another release knows whether it understands it."""

import json
from pathlib import Path

import pytest

from cni_contrail.installer.cli import main
from cni_contrail.installer.errors import InstallError
from cni_contrail.installer.report import INSTALL, Report, Reporter, read_report
from cni_contrail.log import Log

WITHOUT_VERSION = '{"action": "install", "done": true, "waiting": "", "errors": [], "conflicts": []}'
NEWER = '{"version": 2, "action": "install", "done": true}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "installer.json"


def test_it_is_read_as_it_was_written(file: Path) -> None:
    report = Report(INSTALL, waiting="the daemon", errors=("error",), conflicts=("conflict",))
    Reporter(str(file.parent), Log()).report(report)
    assert json.loads(file.read_text())["version"] == 1
    assert read_report(str(file.parent)) == report


def test_one_of_the_release_that_wrote_no_version_is_understood(file: Path) -> None:
    file.write_text(WITHOUT_VERSION)
    assert read_report(str(file.parent)) == Report(INSTALL, done=True)


def test_keys_of_a_newer_release_are_ignored(file: Path) -> None:
    file.write_text('{"version": 1, "action": "install", "done": true, "since": "2026-01-01"}')
    assert read_report(str(file.parent)) == Report(INSTALL, done=True)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (NEWER, "has version 2, this release reads version 1"),
        ('{"version": null, "action": "install", "done": true}', "has version null, this release reads version 1"),
        ("", "is malformed: "),
        ("[]", "is malformed: "),
        ('{"version": 1, "done": true}', "is malformed: "),
        ('{"version": 1, "action": "install", "errors": 1}', "is malformed: "),
    ],
)
def test_without_one_that_is_understood_nothing_is_done(
    file: Path, capsys: pytest.CaptureFixture[str], content: str, error: str
) -> None:
    file.write_text(content)
    with pytest.raises(InstallError, match=r"/installer\.json: "):
        read_report(str(file.parent))
    assert main(["is-installed", "--run-dir", str(file.parent)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"contrail-installer: {file}: {error}")


@pytest.mark.parametrize("content", [WITHOUT_VERSION, NEWER, ""])
def test_one_of_another_release_is_replaced(file: Path, content: str) -> None:
    file.write_text(content)
    Reporter(str(file.parent), Log()).report(Report(INSTALL, waiting="the daemon"))
    assert read_report(str(file.parent)) == Report(INSTALL, waiting="the daemon")
