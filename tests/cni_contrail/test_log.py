"""Log lines: time, level and context, one write each."""

import os
import re
from pathlib import Path

import pytest

from cni_contrail.log import LEVELS, Log
from tests.cni_contrail.conftest import SMALL_DISK
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod


@pytest.fixture(autouse=True)
def nothing_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process."""
    monkeypatch.setattr("cni_contrail.log._reported", {})


def test_a_line_contains_time_level_and_context(tmp_path: Path) -> None:
    path = tmp_path / "log"
    Log(str(path)).bind(container="c1", pod="demo/web-0", vmi="").bind(vmi="v1").info("attached\neth0")
    line = path.read_text()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO container=c1 pod=demo/web-0 vmi=v1 attached\\neth0\n", line
    )


def test_long_values_of_the_context_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    Log(str(path)).bind(pod="x" * 60_000).info("attached")
    assert "x" * 197 + "... attached" in path.read_text()
    assert len(path.read_text()) < 300


@pytest.mark.parametrize("json_lines", [False, True])
def test_a_text_with_control_characters_forges_no_line(tmp_path: Path, *, json_lines: bool) -> None:
    """A terminal would show what follows a carriage return, or an escape sequence, in place of the line."""
    path = tmp_path / "log"
    Log(str(path), json_lines=json_lines).error("unknown key a\r2026 INFO forged\x1b[2K\x9b2K\n")
    line = path.read_bytes().decode()
    assert not re.search(r"[\x00-\x1f\x80-\x9f]", line.removesuffix("\n"))
    assert r"a\r2026 INFO forged" in line


@pytest.mark.parametrize("level", LEVELS)
def test_lines_below_the_level_are_not_written(tmp_path: Path, level: str) -> None:
    path = tmp_path / "log"
    log = Log(str(path), level)
    for write in (log.debug, log.info, log.warning, log.error):
        write("x")
    assert path.read_text().count("\n") == len(LEVELS) - LEVELS.index(level)


def test_lines_are_appended_to_an_existing_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for number in range(3):
        Log(str(path)).info(str(number))
    assert path.read_text().count("\n") == 3
    assert path.stat().st_mode & 0o077 == 0


class TestUnwritableFile:
    @pytest.fixture(params=["opened", "written"])
    def path(self, request: pytest.FixtureRequest, tmp_path: Path, small_disk: Path) -> str:
        if request.param == "opened":
            return str(tmp_path / "none" / "log")
        (small_disk / "all").write_bytes(bytes(SMALL_DISK - 4096))
        (small_disk / "log").write_bytes(b"x" * 4096)
        return str(small_disk / "log")

    def test_lines_go_to_standard_error_after_one_warning(self, path: str, capfd: pytest.CaptureFixture[str]) -> None:
        Log(path, "error").bind(container="c1").error("said")
        Log(path).info("said again")
        warning, *lines = capfd.readouterr().err.splitlines()
        why = "No such file or directory" if "none" in path else "No space left on device"
        assert warning.endswith(f"Z WARNING container=c1 log-file {path}: {why}: logging to standard error instead")
        assert [line.split(maxsplit=1)[1] for line in lines] == ["ERROR container=c1 said", "INFO said again"]

    def test_lines_go_to_the_file_again_once_it_is_writable(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        log = Log(str(tmp_path / "made" / "log"))
        log.info("early")
        (tmp_path / "made").mkdir()
        log.info("late")
        assert "INFO late" not in capfd.readouterr().err
        assert "INFO late" in (tmp_path / "made" / "log").read_text()

    def test_each_file_has_one_warning_up_to_a_limit(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        """A NAD may name any file."""
        for number in range(100):
            Log(str(tmp_path / "none" / str(number))).info("said")
        lines = capfd.readouterr().err
        assert lines.count("said") == 100
        assert 2 < lines.count("WARNING") < 50


def test_any_text_is_written(tmp_path: Path) -> None:
    path = tmp_path / "log"
    Log(str(path)).info("\udcff ä")
    assert "\\udcff ä" in path.read_text()


def test_a_closed_standard_error_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", broken)
    Log().error("unheard")


def test_every_line_of_a_call_contains_container_and_pod(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, tmp_path: Path
) -> None:
    path = tmp_path / "cni.log"
    settings = {"log-file": str(path), "log-level": "debug"}
    vmis = serve_pod(agent, 2)
    assert plugin.add(pod, settings=settings).succeeded().stderr == ""
    plugin.add(pod, settings=settings).failed(102)
    plugin.delete(pod, settings=settings).succeeded()
    lines = path.read_text().splitlines()
    assert len(lines) == 4
    assert all(f"container={pod.container}" in line and "pod=demo/web-0" in line for line in lines)
    assert all(f"vmi={vmi.uuid}" in line for vmi, line in zip(vmis, lines, strict=False))
    assert "failed with code 102" in lines[2]
    assert "detached eth0, eth1" in lines[3]
