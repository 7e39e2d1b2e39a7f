"""An installer that is killed at any step leaves each file old or new, and the list only beside what it needs."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.installer.cli import main
from cni_contrail.installer.installation import CONFIGURATIONS
from cni_contrail.installer.source import read_source
from cni_contrail.installer.upstream import find_upstream
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
from tests.cni_contrail.installer.test_uninstaller import stops_after
from tests.cni_contrail.installer.upstream_node import CONF, EXECUTABLE, KEPT_PLUGIN, TF_CONF, UpstreamNode
from tests.support.scripted_agents import ScriptedAgent

STEPS = ("open", "write", "fchmod", "fsync", "rename", "link", "symlink", "unlink")
NEEDED = (PLUGIN, LOOPBACK, OUR_LOOPBACK, SETTINGS)


class KilledError(BaseException):
    """No handler of the installer catches it, as none runs after a kill."""


class Killer:
    """Kills at the `number`th step."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._left = 0
        for name in STEPS:
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))

    def run(self, work: Callable[[], object], number: int) -> bool:
        """Runs the work; returns whether it was killed."""
        self._left = number
        try:
            work()
        except KilledError:
            return True
        finally:
            self._left = 0
        return False

    def _counted(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                raise KilledError
            return step(*arguments, **options)

        return counted


@pytest.fixture
def killer(monkeypatch: pytest.MonkeyPatch) -> Killer:
    return Killer(monkeypatch)


def whole(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def release(node: InstallerNode, text: str) -> dict[str, str]:
    """Configures a release; returns what its files contain."""
    contents = {
        "contrail-k8s-cni": f"plugin {text}, which reads CONTRAIL_CNI_SOCKET",
        "loopback": f"loopback {text}",
        "cni.json": json.dumps({"cluster-name": text}),
        "10-contrail.conflist": network_list(name=text),
    }
    for name, content in contents.items():
        node.configure(name, content)
    by_name = dict(zip((PLUGIN, LOOPBACK, SETTINGS, CONFLIST), contents.values(), strict=True))
    return by_name | {OUR_LOOPBACK: by_name[LOOPBACK]}


def install(node: InstallerNode) -> None:
    source = read_source(node.paths.configuration, node.paths.plugins)
    assert node.installation().install(source, lambda _: "") == ""


def uninstall(node: InstallerNode) -> None:
    installation = node.installation()
    installation.withdraw_list()
    installation.remove()


def kills(killer: Killer, work: Callable[[], object]) -> Iterator[int]:
    """Kills the work at each step in turn, until it gets through."""
    number = 1
    while killer.run(work, number):
        yield number
        number += 1
    assert number > len(STEPS)


def test_a_first_installation(installer_node: InstallerNode, killer: Killer) -> None:
    new = release(installer_node, "new")
    for _ in kills(killer, lambda: install(installer_node)):
        found = {name: whole(installer_node.path(name)) for name in ALL}
        assert all(found[name] in (None, new[name]) for name in ALL)
        assert found[CONFLIST] is None or all(found[name] for name in NEEDED)
        for name in installer_node.files():
            installer_node.path(name).unlink()
    install(installer_node)
    assert {name: whole(installer_node.path(name)) for name in installer_node.files()} == new


def test_an_upgrade(installer_node: InstallerNode, killer: Killer) -> None:
    old = release(installer_node, "old")
    install(installer_node)
    new = release(installer_node, "new")
    for _ in kills(killer, lambda: install(installer_node)):
        found = {name: whole(installer_node.path(name)) for name in ALL}
        assert all(found[name] in (old[name], new[name]) for name in ALL)
        assert found[CONFLIST] == old[CONFLIST] or all(found[name] == new[name] for name in NEEDED)
        install(installer_node)  # the next process goes on, and leaves nothing of the killed one
        assert {name: whole(installer_node.path(name)) for name in installer_node.files()} == new
        release(installer_node, "old")
        install(installer_node)
        release(installer_node, "new")


def test_an_uninstallation(installer_node: InstallerNode, killer: Killer) -> None:
    new = release(installer_node, "new")
    install(installer_node)
    for _ in kills(killer, lambda: uninstall(installer_node)):
        found = {name: whole(installer_node.path(name)) for name in ALL}
        assert found[CONFLIST] is None or found == new
        installer_node.installation().remove()  # the next process goes on
        assert installer_node.files() == []
        install(installer_node)
    assert installer_node.files() == []


def test_an_installation_after_a_killed_uninstallation(installer_node: InstallerNode, killer: Killer) -> None:
    new = release(installer_node, "new")
    install(installer_node)
    for _ in kills(killer, lambda: uninstall(installer_node)):
        install(installer_node)
        assert {name: whole(installer_node.path(name)) for name in installer_node.files()} == new


def test_an_uninstaller_and_its_report(installer_node: InstallerNode, killer: Killer) -> None:
    release(installer_node, "new")
    is_uninstalled = ["is-uninstalled", "--run-dir", installer_node.paths.run_dir]
    installer_node.look()
    for _ in kills(killer, lambda: installer_node.uninstaller().run(stops_after())):
        assert main(is_uninstalled) == 1 or installer_node.files() == []
        installer_node.uninstaller().run(stops_after())  # the next process goes on
        assert installer_node.files() == []
        assert main(is_uninstalled) == 0
        installer_node.look()
        assert main(is_uninstalled) == 1


def take_over(node: UpstreamNode) -> None:
    source = read_source(node.paths.configuration, node.paths.plugins)
    upstream = find_upstream(node.paths.root, CONFIGURATIONS)
    assert node.installation().install(source, lambda _: "", upstream) == ""


@pytest.fixture
def upstream_node(tmp_path: Path, agent: ScriptedAgent) -> UpstreamNode:
    node = UpstreamNode(tmp_path, agent)
    release(node, "new")
    node.configure("contrail-k8s-cni", "plugin new CONTRAIL_CNI_SOCKET")
    node.install_upstream()
    return node


def test_a_take_over(upstream_node: UpstreamNode, killer: Killer) -> None:
    before = upstream_node.snapshot()
    for _ in kills(killer, lambda: take_over(upstream_node)):
        found = upstream_node.first_configuration().name
        executable = upstream_node.path(PLUGIN).read_bytes()
        assert found == "10-contrail.conf" or (executable != EXECUTABLE and found == "10-contrail.conflist")
        take_over(upstream_node)  # the next process goes on
        assert upstream_node.path(KEPT_PLUGIN).read_bytes() == EXECUTABLE
        assert not any(name.endswith(".part") for name in upstream_node.files())
        upstream_node.installation().remove()
        assert upstream_node.snapshot() == before


def test_a_take_over_of_two_configurations_of_which_the_first_counts(
    upstream_node: UpstreamNode, killer: Killer
) -> None:
    upstream_node.install_upstream(TF_CONF, **{"cluster-name": "old"})
    before = upstream_node.snapshot()
    for _ in kills(killer, lambda: take_over(upstream_node)):
        found = find_upstream(upstream_node.paths.root, CONFIGURATIONS)
        assert found is None or found.path == f"/{CONF}"
        upstream_node.installation().remove()
        assert upstream_node.snapshot() == before


def test_the_way_back_from_a_take_over(upstream_node: UpstreamNode, killer: Killer) -> None:
    before = upstream_node.snapshot()
    take_over(upstream_node)
    for _ in kills(killer, lambda: upstream_node.installation().remove()):
        assert upstream_node.first_configuration().name == "10-contrail.conf" or upstream_node.path(CONFLIST).exists()
        assert upstream_node.path(PLUGIN).exists()
        upstream_node.installation().remove()
        assert upstream_node.files() == sorted(before)
        assert upstream_node.snapshot() == before
        take_over(upstream_node)
    assert upstream_node.snapshot() == before


def test_an_installation_over_an_executable_without_configuration(upstream_node: UpstreamNode, killer: Killer) -> None:
    upstream_node.path(CONF).unlink()
    before = upstream_node.snapshot()
    for _ in kills(killer, lambda: install(upstream_node)):
        upstream_node.installation().remove()
        assert upstream_node.files() == sorted(before)
        assert upstream_node.snapshot() == before


def test_the_way_back_to_an_executable_without_configuration(upstream_node: UpstreamNode, killer: Killer) -> None:
    upstream_node.path(CONF).unlink()
    before = upstream_node.snapshot()
    install(upstream_node)
    for _ in kills(killer, lambda: uninstall(upstream_node)):
        for _ in range(2):  # the second finds nothing to do
            upstream_node.installation().remove()
            assert upstream_node.files() == sorted(before)
            assert upstream_node.snapshot() == before
        install(upstream_node)
    assert upstream_node.snapshot() == before
