"""Maintenance continues after a while of invalid settings, and logs each failure in one line."""

import threading
from collections import Counter
from pathlib import Path

import pytest

from cni_contrail.commands.node import NodeServices
from cni_contrail.commands.sweep import sweep, sweep_all
from cni_contrail.daemon import maintenance
from cni_contrail.daemon.maintenance import Maintenance
from cni_contrail.errors import Code, PluginError
from cni_contrail.execution_context import ExecutionContext
from cni_contrail.log import Log
from cni_contrail.settings import Settings


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST_PAUSE", "_LONGEST_PAUSE", "_SWEEP_PAUSE"):
        monkeypatch.setattr(maintenance, name, 0.01)


def test_maintenance_resumes_when_the_settings_are_valid_again(tmp_path: Path) -> None:
    tries: Counter[str] = Counter()
    both = threading.Event()
    log = tmp_path / "log"

    def node() -> NodeServices:
        tries[threading.current_thread().name] += 1
        if tries[threading.current_thread().name] < 3:
            raise PluginError(Code.INVALID_CONFIG, "cni.json: cannot be read")
        if len(tries) == 2 and min(tries.values()) >= 3:
            both.set()
        return NodeServices(Settings(state_dir=str(tmp_path / "state")), Log(), ExecutionContext())

    running = Maintenance(node, Log(str(log)), freed=lambda _: None)
    running.start()
    assert both.wait(10)
    running.stop(10)
    lines = log.read_text().splitlines()
    assert len(lines) == 4, "both kinds of work failed twice, and no more"
    assert all(line.endswith("WARNING maintenance postponed: cni.json: cannot be read") for line in lines)


def test_an_unreadable_state_directory_is_logged_and_skipped(tmp_path: Path) -> None:
    log = tmp_path / "log"
    node = NodeServices(Settings(state_dir="/" + "x" * 300), Log(str(log)), ExecutionContext())
    assert sweep_all(node) == 0
    sweep(node, "another")
    lines = log.read_text().splitlines()
    assert len(lines) == 2
    assert all("WARNING sweep skipped: " in line and "File name too long" in line for line in lines)
