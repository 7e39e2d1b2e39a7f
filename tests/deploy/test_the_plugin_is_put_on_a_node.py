"""`install-node` of the image: every file is there whole or not at all, the network configuration last."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy" / "image" / "install-node"
FILES = ("cni.json", "10-contrail.conflist")


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    folder = tmp_path / "configuration"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_text(f"{name}, new")
    return folder


@pytest.fixture
def node(tmp_path: Path) -> Path:
    root = tmp_path / "node"
    for folder in ("opt/cni/bin", "etc/cni/net.d", "etc/contrail"):
        (root / folder).mkdir(parents=True)
    return root


def install(configuration: Path, node: Path, plugin: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CONTRAIL_PLUGIN": str(plugin)}
    command = [str(SCRIPT), str(configuration), str(node)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=10)


def files(node: Path) -> dict[str, tuple[str, int]]:
    found = (path for path in node.rglob("*") if path.is_file())
    return {str(path.relative_to(node)): (path.read_text(), path.stat().st_mode & 0o777) for path in found}


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    file = tmp_path / "plugin"
    file.write_text("#!/bin/sh\necho new\n")
    return file


def test_all_is_where_runtime_and_plugin_look_for_it(configuration: Path, node: Path, plugin: Path) -> None:
    for _ in range(2):
        assert install(configuration, node, plugin).returncode == 0
        assert files(node) == {
            "opt/cni/bin/contrail-k8s-cni": (plugin.read_text(), 0o755),
            "etc/contrail/cni.json": ("cni.json, new", 0o600),
            "etc/cni/net.d/10-contrail.conflist": ("10-contrail.conflist, new", 0o600),
        }


def test_a_plugin_that_is_running_is_replaced(configuration: Path, node: Path, plugin: Path) -> None:
    there = node / "opt/cni/bin/contrail-k8s-cni"
    there.write_bytes(Path("/bin/sleep").read_bytes())
    there.chmod(0o755)
    with subprocess.Popen([there, "60"]) as running:
        assert install(configuration, node, plugin).returncode == 0
        assert running.poll() is None
        running.kill()
    assert there.read_text() == plugin.read_text()


def test_a_node_takes_no_pods_before_the_plugin_is_there(configuration: Path, node: Path, tmp_path: Path) -> None:
    ended = install(configuration, node, tmp_path / "absent")
    assert ended.returncode != 0
    assert "absent" in ended.stderr
    assert files(node) == {}
