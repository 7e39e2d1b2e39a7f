"""`contrail-installer` as processes: several at once, killed, stopped, and asked whether they are done."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cni_contrail.installer import cli
from tests.cni_contrail.conftest import DAEMON, until
from tests.cni_contrail.installer.conftest import ALL, CONFLIST, PLUGIN, InstallerNode
from tests.support.plugin import Plugin
from tests.support.plugin_callers import ShimAndDaemon
from tests.support.scripted_agents import ScriptedAgent
from tests.support.shim import build_shim

COMMAND = Path(sys.executable).parent / "contrail-installer"

Start = Callable[[str], "subprocess.Popen[str]"]


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

    def start(action: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        process = subprocess.Popen([COMMAND, action, *options(installer_node)], stdout=pipe, stderr=pipe, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=10)


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
