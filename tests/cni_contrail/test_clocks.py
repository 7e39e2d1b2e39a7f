"""The system time may be set at any moment, so plugin, daemon and installer go by the monotonic clock.

Each use of the system time is listed here, with the worst that a jump of it does.
"""

import ast
import os
import re
import time
from pathlib import Path

import pytest

import cni_contrail
from cni_contrail.agent import postponement
from cni_contrail.agent.postponement import is_due, postpone
from cni_contrail.state.files import create_atomically, remove_old_partial_files
from tests.support.system_clock import SystemClock

PACKAGE = Path(cni_contrail.__file__).parent
OF_TIME = {"monotonic", "perf_counter", "sleep", "thread_time"}
"""Functions of the module `time` that do not depend on the system time."""

USES = {
    "agent/postponement.py": "a pause ends early, or lasts for the longest one once more",
    "commands/attach_steps.py": "a value for people, as Contrail's own plugin writes it",
    "daemon/recent_adds.py": "a value for people",
    "log.py": "a value for people",
    "node_file.py": "until the clock passes its last change, a file is read at each call; no change of it is missed",
    "state/files.py": "a file that is being created may be removed, and is created again",
}
HOUR = 3600.0


def uses_system_time(path: Path) -> bool:
    """Whether a module has functions of the system time, or times of files, which are system time, too."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Attribute(value=ast.Name(id="time"), attr=name) if name not in OF_TIME:
                return True
            case ast.ImportFrom(module="time", names=names) if {each.name for each in names} - OF_TIME:
                return True
            case ast.Import(names=names) if any(each.name == "datetime" for each in names):
                return True
            case ast.ImportFrom(module="datetime"):
                return True
            case ast.Attribute(attr=name) if re.fullmatch(r"st_[amc]time(_ns)?|get[amc]time|utime", name):
                return True
    return False


def test_every_use_of_the_system_time_is_known() -> None:
    found = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if uses_system_time(path)}
    assert found == set(USES)


def test_the_native_shim_uses_the_monotonic_clock_only() -> None:
    sources = "".join(path.read_text() for path in (PACKAGE / "shim").glob("*.[ch]"))
    assert set(re.findall(r"\bCLOCK_\w+", sources)) == {"CLOCK_MONOTONIC"}
    assert not re.search(r"\b(time|gettimeofday|ftime)\(", sources)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SystemClock:
    clock = SystemClock()
    monkeypatch.setattr(time, "time", clock)
    return clock


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["ahead", "back"])
class TestJumps:
    def test_what_was_postponed_is_due_at_once(self, clock: SystemClock, tmp_path: Path, jump: float) -> None:
        request = tmp_path / "request"
        request.touch()
        postpone(str(request))
        assert not is_due(str(request))
        clock.ahead += jump
        assert is_due(str(request))

    def test_a_file_that_is_being_created_is_not_lost(
        self, clock: SystemClock, tmp_path: Path, jump: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        link = os.link

        def link_after_the_jump(part: str, path: str) -> None:
            if not clock.ahead:
                clock.ahead = jump
                remove_old_partial_files(str(tmp_path), 60)
            link(part, path)

        monkeypatch.setattr(os, "link", link_after_the_jump)
        create_atomically(str(tmp_path / "file"), b"content")
        assert (tmp_path / "file").read_bytes() == b"content"
        assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_clock_that_is_set_back_by_less_than_a_pause_costs_one_longest_pause(
    clock: SystemClock, tmp_path: Path
) -> None:
    request = tmp_path / "request"
    request.touch()
    clock.ahead = -postponement._LONGEST_PAUSE / 2
    assert not is_due(str(request))
    clock.ahead = 0.1
    assert is_due(str(request))
