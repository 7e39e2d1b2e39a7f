"""`contrail-installer` as a process that SIGKILL ends before each of its changes of files, and that is started again.

Each file is old or new at any time, the network configuration list is only beside what it needs, and the next process
leaves nothing of the killed one. `test_installation_killed` has more steps, in one process.
"""

import itertools
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.deadline import Deadline
from cni_contrail.installer.report import INSTALL, UNINSTALL, read_report
from tests.cni_contrail.installer.conftest import (
    ALL,
    CONFLIST,
    LOOPBACK,
    OUR_LOOPBACK,
    PLUGIN,
    SETTINGS,
    InstallerNode,
    network_list,
)
from tests.cni_contrail.installer.test_installation_killed import NEEDED, whole
from tests.cni_contrail.installer.test_installer_command import COMMAND, options
from tests.support.scripted_agents import ScriptedAgent
from tests.support.traced_steps import Step, traced_steps

Files = dict[str, str]
Found = dict[str, str | None]

NONE: Files = {}
_CHANGES = (
    "write,fsync,rename,unlink,link,symlink"  # opening or truncating a file changes what the next write completes
)
_AT_ONCE = 4  # nodes; uninstallers pause for a second
_TIMEOUT = 30.0  # seconds; a start under strace takes half a second on an idle machine
_RUN_DIR = {"installer.json", "installer.lock"}


class InstallerProcessNode:
    """A node whose installers are processes of their own."""

    def __init__(self, folder: Path, agent: ScriptedAgent) -> None:
        folder.mkdir()
        self._node = InstallerNode(folder, agent)
        self._node.set_ready()
        self._folder = folder
        self._agent = agent

    def release(self, text: str) -> Files:
        """Configures a release; returns the files that it has on the node."""
        node = self._node
        plugin = f"#!/bin/sh\nexit 0  # a shim, which reads CONTRAIL_CNI_SOCKET, of the {text} release\n"
        node.configure("contrail-k8s-cni", plugin)
        loopback = f"loopback of the {text} release"
        node.configure("loopback", loopback)
        settings = json.dumps({"agent-socket": self._agent.socket_path, "cluster-name": text})
        node.configure("cni.json", settings)
        node.configure("10-contrail.conflist", network_list(name=text))
        contents = (plugin, loopback, loopback, settings, network_list(name=text))
        return dict(zip((PLUGIN, LOOPBACK, OUR_LOOPBACK, SETTINGS, CONFLIST), contents, strict=True))

    def install(self) -> None:
        """Installs at once."""
        assert self._node.look().done

    def files(self) -> Files:
        """All files of the node."""
        return {name: self._node.path(name).read_text() for name in self._node.files()}

    def found(self) -> Found:
        """What is where a runtime looks; None if nothing is there."""
        return {name: whole(self._node.path(name)) for name in ALL}

    def is_done(self, action: str) -> bool:
        """Whether the report, which is whole, says so, and is of the release that is configured."""
        report = read_report(self._node.paths.run_dir)
        if report is None or report.action != action or not report.done:
            return False
        return action == UNINSTALL or report.source == self._node.paths.digest()

    def has(self, action: str, files: Files) -> bool:
        """Whether exactly these files are there, nothing of a killed process is, and the report says so."""
        if self._node.files() != sorted(files) or not self._is_tidy() or not self.is_done(action):
            return False
        return all(self._node.path(name).read_text() == text for name, text in files.items())

    def path(self, name: str) -> str:
        """The path of a file of the node."""
        return str(self._node.path(name))

    def trace(self, action: str, files: Files) -> list[tuple[Step, str]]:
        """Runs the action until the files are there; returns its changes of files, with lines of strace."""
        trace = self._folder / "trace"
        with self._running(action, "strace", "-y", "-qq", f"--output={trace}", f"--trace={_CHANGES}"):
            self._await(lambda: self.has(action, files))
        steps = traced_steps(trace.read_text())
        return [(step, line) for step, line in steps if f"{self._folder}/" in line and " = -1 " not in line]

    def steps(self, action: str, files: Files) -> list[Step]:
        """Runs the action until the files are there; returns its steps, without those that only wait for the disk."""
        changes = [(step, line) for step, line in self.trace(action, files) if step.name != "fsync"]
        last = max(number for number, (_, line) in enumerate(changes) if f"{self._node.root}/" in line)
        return [step for step, _ in changes[: last + 3]]  # its report is two steps

    def kill(self, action: str, step: Step) -> None:
        """Runs the action until it is about to take the step."""
        with self._running(action, *step.kill()) as process:
            assert process.wait(_TIMEOUT) == -signal.SIGKILL, step

    def complete(self, action: str, files: Files) -> None:
        """Runs the action until the files are there."""
        with self._running(action):
            self._await(lambda: self.has(action, files))

    @contextmanager
    def _running(self, action: str, *prefix: str) -> Iterator["subprocess.Popen[Any]"]:
        process = subprocess.Popen(
            [*prefix, COMMAND, action, *options(self._node)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # modules that are compiled are changes of files, too
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with strace alone, the traced process would go on
            process.wait(_TIMEOUT)

    def _is_tidy(self) -> bool:
        return {path.name for path in Path(self._node.paths.run_dir).iterdir()} == _RUN_DIR

    def _await(self, condition: Callable[[], bool]) -> None:
        assert any(condition() for _ in Deadline(_TIMEOUT).attempts(0.01, 0.1)), self.found()


MakeNode = Callable[[], InstallerProcessNode]
Prepare = Callable[[InstallerProcessNode], tuple[Files, Files]]
"""Returns what is on the node before an action and after it."""
StartAgain = Callable[[InstallerProcessNode, str, Files, Files], None]
"""Starts what follows the kill of an action, whose files before and after it these are, and awaits it."""


@pytest.fixture
def make_node(tmp_path: Path, agent: ScriptedAgent) -> MakeNode:
    numbers = itertools.count()
    return lambda: InstallerProcessNode(tmp_path / f"{next(numbers)}", agent)


def first_installation(node: InstallerProcessNode) -> tuple[Files, Files]:
    return NONE, node.release("new")


def upgrade(node: InstallerProcessNode) -> tuple[Files, Files]:
    old = node.release("old")
    node.install()
    return old, node.release("new")


def uninstallation(node: InstallerProcessNode) -> tuple[Files, Files]:
    old = node.release("old")
    node.install()
    return old, NONE


def go_on(node: InstallerProcessNode, action: str, _before: Files, after: Files) -> None:
    node.complete(action, after)


def go_back(node: InstallerProcessNode, _action: str, before: Files, _after: Files) -> None:
    node.release("old")
    node.complete(INSTALL, before)


def check_kill(node: InstallerProcessNode, action: str, before: Files, after: Files, step: Step) -> Found:
    """Kills the action at the step; returns what is there then."""
    was_done = node.is_done(action)
    node.kill(action, step)
    found = node.found()
    assert all(found[name] in (before.get(name), after.get(name)) for name in ALL), step
    with_list = after if action == INSTALL else before  # of its files, none is missing or of another release
    if found[CONFLIST] == with_list[CONFLIST]:
        assert all(found[name] == with_list[name] for name in NEEDED), step
    assert was_done or not node.is_done(action) or node.files() == after, step
    return found


@pytest.mark.parametrize(
    ("action", "prepare", "start_again"),
    [
        pytest.param(INSTALL, first_installation, go_on, id="first installation"),
        pytest.param(INSTALL, upgrade, go_on, id="upgrade"),
        pytest.param(INSTALL, upgrade, go_back, id="rollback after an upgrade"),
        pytest.param(UNINSTALL, uninstallation, go_on, id="uninstallation"),
        pytest.param(UNINSTALL, uninstallation, go_back, id="installation after an uninstallation"),
    ],
)
def test_a_kill_at_any_change_of_a_file(
    make_node: MakeNode, action: str, prepare: Prepare, start_again: StartAgain
) -> None:
    traced = make_node()
    before, after = prepare(traced)
    steps = traced.steps(action, after)
    nodes = [make_node() for _ in steps]
    for node in nodes:
        prepare(node)

    def kill_and_start_again(node: InstallerProcessNode, step: Step) -> Found:
        found = check_kill(node, action, before, after, step)
        start_again(node, action, before, after)
        return found

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(kill_and_start_again, nodes, steps))
    # The kills were before the first change, after the last one, and between.
    assert found[0] == {name: before.get(name) for name in ALL}
    assert found[-1] == {name: after.get(name) for name in ALL}
    assert len({tuple(each.values()) for each in found}) > len(NEEDED)


def test_each_file_is_on_the_disk_before_it_has_its_name(make_node: MakeNode) -> None:
    """After a power failure a file with its name must not be empty."""
    node = make_node()
    new = node.release("new")
    calls = [line for _, line in node.trace(INSTALL, new)]
    for name in (PLUGIN, OUR_LOOPBACK, SETTINGS, CONFLIST):
        path = node.path(name)
        (renamed,) = (
            number for number, line in enumerate(calls) if line.startswith(f'rename("{path}.part", "{path}")')
        )
        assert re.match(rf"fsync\(\d+<{re.escape(path)}\.part>\)", calls[renamed - 1])
        assert re.match(rf"fsync\(\d+<{re.escape(os.path.dirname(path))}>\)", calls[renamed + 1])
