"""`contrail-installer` as processes: several at once, killed, stopped, and asked whether they are done."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from cni_contrail.installer import cli
from tests.cni_contrail.conftest import DAEMON, until
from tests.cni_contrail.installer.conftest import ALL, CONFLIST, LOOPBACK, PLUGIN, InstallerNode
from tests.support.plugin import Plugin
from tests.support.plugin_callers import ShimAndDaemon
from tests.support.scripted_agents import ScriptedAgent
from tests.support.shim import build_shim
from tests.support.traced_steps import Step

COMMAND = Path(sys.executable).parent / "contrail-installer"

Start = Callable[..., "subprocess.Popen[str]"]
"""Starts an action, by the command in `prefix` if there is one."""

LOCKED_OUT = "another process installs or uninstalls on this node: doing nothing until it ends"


def options(node: InstallerNode) -> list[str]:
    paths = node.paths
    return [
        f"--host={paths.root}/",
        f"--configuration={paths.configuration}",
        f"--plugins={paths.plugins}",
        f"--run-dir={paths.run_dir}",
    ]


@pytest.fixture
def start(installer_node: InstallerNode) -> Iterator[Start]:
    """Starts an action; what still runs is killed in the end."""
    started: list[subprocess.Popen[str]] = []

    def start(action: str, *, prefix: Sequence[str] = ()) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        command = [*prefix, str(COMMAND), action, *options(installer_node)]
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
        started.append(process)
        return process

    yield start
    for process in started:
        kill(process)
        process.communicate(timeout=10)


def kill(process: "subprocess.Popen[str]") -> None:
    """Kills it, and what it traces."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def ask(node: InstallerNode, question: str) -> int:
    return cli.main([question, *options(node)])


def test_several_at_once_install_one_set_of_files(installer_node: InstallerNode, start: Start) -> None:
    running = [start("install") for _ in range(4)]
    until(lambda: ask(installer_node, "is-installed") == 0)
    assert installer_node.files() == ALL
    for process in running[:2]:
        process.kill()
    installer_node.path(CONFLIST).unlink()
    until(lambda: installer_node.files() == ALL)
    for process in running[2:]:
        assert process.stderr is not None
        assert process.stderr.readline()  # it has looked, so SIGTERM no longer kills it
        process.terminate()
        assert process.wait(10) == 0


def test_the_next_one_takes_over_when_one_is_killed_while_it_works(installer_node: InstallerNode, start: Start) -> None:
    working = start("install", prefix=Step("symlink", 1).stop())
    until(installer_node.path(LOOPBACK).exists)
    waiting = start("install")
    assert waiting.stderr is not None
    assert LOCKED_OUT in waiting.stderr.readline()
    assert not installer_node.path(CONFLIST).exists()
    kill(working)
    until(lambda: ask(installer_node, "is-installed") == 0)
    assert installer_node.files() == ALL


def test_an_installer_takes_over_from_a_killed_uninstaller(installer_node: InstallerNode, start: Start) -> None:
    installer_node.look()
    uninstalling = start("uninstall")
    until(lambda: ask(installer_node, "is-uninstalled") == 0)
    installing = start("install")
    assert installing.stderr is not None
    assert LOCKED_OUT in installing.stderr.readline()
    assert installer_node.files() == []
    kill(uninstalling)
    until(lambda: ask(installer_node, "is-installed") == 0)
    assert installer_node.files() == ALL


def test_what_it_waits_for_is_told(
    installer_node: InstallerNode, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(installer_node, "is-installed") == 1
    assert capsys.readouterr().err == "contrail-installer install: has not begun\n"
    installer_node.set_ready(is_ready=False)
    start("install")
    until(installer_node.path(PLUGIN).exists)
    until((Path(installer_node.paths.run_dir) / "installer.json").exists)
    assert ask(installer_node, "is-installed") == 1
    assert capsys.readouterr().err == "waiting: plugin contrail-k8s-cni failed (STATUS): no daemon (code 50)\n"


@pytest.mark.parametrize("file", ["plugins/contrail-k8s-cni", "configuration/cni.json"])
def test_what_another_release_has_installed_is_no_answer(
    installer_node: InstallerNode, start: Start, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """Otherwise a node would be ready before the next release is installed, and its rollout would go on."""
    installer_node.look()
    assert ask(installer_node, "is-installed") == 0
    folder, _, name = file.partition("/")
    changed = Path(getattr(installer_node.paths, folder), name)
    changed.write_text(changed.read_text() + "\n")
    assert ask(installer_node, "is-installed") == 1
    assert capsys.readouterr().err == "contrail-installer install: of these files has not begun, only of others\n"
    start("install")
    until(lambda: ask(installer_node, "is-installed") == 0)


def test_an_installation_is_no_uninstallation(installer_node: InstallerNode, start: Start) -> None:
    installing = start("install")
    until(lambda: ask(installer_node, "is-installed") == 0)
    assert ask(installer_node, "is-uninstalled") == 1
    uninstalling = start("uninstall")
    until(lambda: ask(installer_node, "is-uninstalled") == 0)
    assert installer_node.files() == []
    for process in (installing, uninstalling):
        process.terminate()
        assert process.wait(10) == 0


def test_a_directory_that_is_gone_is_the_end_of_the_process(installer_node: InstallerNode, start: Start) -> None:
    os.rmdir(installer_node.path("opt/cni/bin"))
    process = start("install")
    assert process.wait(10) == 1
    assert process.stderr is not None
    assert process.stderr.read() == "contrail-installer: /opt/cni/bin: the directory does not exist\n"


@pytest.mark.parametrize("plugin", [DAEMON], indirect=True)
def test_the_shim_that_is_installed_asks_the_daemon(
    installer_node: InstallerNode, plugin: Plugin, agent: ScriptedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = plugin.caller
    assert isinstance(caller, ShimAndDaemon)
    plugin.node_file.write_text(json.dumps(plugin.settings))
    monkeypatch.setenv("CONTRAIL_CNI_SOCKET", caller.socket_path)
    shim = Path(installer_node.paths.plugins) / "contrail-k8s-cni"
    shim.write_bytes(Path(build_shim()).read_bytes())
    monkeypatch.setattr("cni_contrail.installer.readiness._STATUS_TIMEOUT", 0.5)
    keeper = installer_node.keeper()
    keeper.look()
    assert installer_node.reported().waiting == "contrail-cnid: no answer to STATUS within 0.5 s"
    monkeypatch.undo()
    monkeypatch.setenv("CONTRAIL_CNI_SOCKET", caller.socket_path)
    caller.daemon()
    agent.reject("GET", "/readyz", status=503)
    keeper.look()
    assert "not ready: 503" in installer_node.reported().waiting
    agent.clear_behaviours()
    installer_node.serve_report(agent)
    keeper.look()
    assert installer_node.files() == ALL
