"""`kubectl contrail`: kubectl finds the plugin in PATH, runs it with its arguments, and passes on its exit status."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.support.cluster_processes import BINARIES

TIMEOUT = 60
NO_SERVER = """{"clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}],
"contexts": [{"name": "none", "context": {"cluster": "none", "user": "nobody"}}],
"users": [{"name": "nobody", "user": {}}], "current-context": "none"}"""


def kubectl(*words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Runs kubectl; where there is none, what it would run: the executable of its first argument in PATH."""
    command = ["kubectl", *words] if shutil.which("kubectl") else [f"kubectl-{words[0]}", *words[1:]]
    environment = {**os.environ, "PATH": f"{BINARIES}:{os.environ['PATH']}", **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)


def test_kubectl_runs_the_plugin() -> None:
    ended = kubectl("contrail", "--help")
    assert ended.returncode == 0
    assert ended.stdout.startswith("usage: kubectl contrail ")


def test_the_exit_status_and_the_error_are_those_of_the_plugin() -> None:
    ended = kubectl("contrail", "trace", "web")
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[0] == "kubectl contrail: 'web': must be NAMESPACE/NAME"


def test_the_status_is_that_of_the_cluster_whatever_the_environment_names(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(NO_SERVER)
    ended = kubectl("contrail", "status", KUBECONFIG=str(file), CONTRAIL_MANAGER="http://127.0.0.1:1")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "127.0.0.1:9" in ended.stderr
