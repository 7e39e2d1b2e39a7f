"""Entry points of the plugin and the daemon."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.plugin import COMMAND

SCRIPTS = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [COMMAND, [str(SCRIPTS / "contrail-k8s-cni")], [sys.executable, "-m", "cni_contrail"]],
    ids=["file", "script", "module"],
)
def test_each_entry_point_starts_the_plugin(command: list[str]) -> None:
    done = subprocess.run(command, env={"CNI_COMMAND": "VERSION"}, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0
    assert json.loads(done.stdout)["cniVersion"] == "1.1.0"
    assert done.stderr == ""


def test_each_entry_point_fails_with_the_exit_status() -> None:
    for command in (COMMAND, [str(SCRIPTS / "contrail-k8s-cni")]):
        done = subprocess.run(command, env={"CNI_COMMAND": "ADD"}, capture_output=True, text=True, timeout=20)
        assert done.returncode == 1
        assert json.loads(done.stdout)["code"] == 4


def test_the_daemon_rejects_a_configuration_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "cnid.yaml"
    file.write_text("sockett: /run/cni.sock\n")
    command = [str(SCRIPTS / "contrail-cnid"), "--config", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f'contrail-cnid: {file}: unknown key sockett with value "/run/cni.sock"\n'


def test_the_daemon_requires_root() -> None:
    program = (
        "import os, sys\n"
        "from cni_contrail.daemon.cli import main\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "sys.exit(main([]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "contrail-cnid: permission denied: must run as root\n"


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_daemon_prints_help_and_version(option: str) -> None:
    done = subprocess.run([str(SCRIPTS / "contrail-cnid"), option], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, "")
    assert "contrail" in done.stdout
