"""kubectl and helm, as operators run them."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
OVERLAYS = ROOT / "deploy" / "overlays"
ALL_OVERLAYS = sorted(folder.name for folder in OVERLAYS.iterdir())
TIMEOUT = 60.0  # seconds for a command
_SCRIPT_TIMEOUT = 300.0

Object = dict[str, Any]


class CommandError(Exception):
    """A command failed; the message is what it wrote to stderr."""


class Kubectl:
    """Runs commands on a cluster in the folder `work`; `scripts/e2e` has kubectl and helm on the PATH.

    `enter` is the prefix of a command that runs where the cluster is reachable.
    """

    def __init__(self, kubeconfig: Path, work: Path = ROOT, enter: Sequence[str] = ()) -> None:
        self._work = work
        self._enter = enter
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}

    def __call__(self, *arguments: str) -> str:
        """Runs kubectl, and returns its output. Raises CommandError if it fails."""
        return _run(*self._enter, "kubectl", *arguments, cwd=self._work, env=self._environment)

    def helm(self, *arguments: str) -> str:
        """Runs helm, and returns its output. Raises CommandError if it fails."""
        return _run(*self._enter, "helm", *arguments, cwd=self._work, env=self._environment)

    def start(self, *command: str) -> "subprocess.Popen[str]":
        """Starts a program that finds the cluster as kubectl does; its output is in pipes."""
        pipe = subprocess.PIPE
        whole = [*self._enter, *command]
        return subprocess.Popen(whole, stdout=pipe, stderr=pipe, text=True, cwd=self._work, env=self._environment)

    def shell(self, script: str) -> str:
        """Runs a script that calls kubectl, and returns its output.

        Raises CommandError, with the commands that were begun, if one fails or the script does not end.
        """
        command = ("timeout", f"{_SCRIPT_TIMEOUT:g}", "bash", "-euxc", script)
        return _run(*self._enter, *command, timeout=2 * _SCRIPT_TIMEOUT, cwd=self._work, env=self._environment)


def built(folder: Path) -> list[Object]:
    """The objects of a kustomization. Raises CommandError if it is invalid."""
    return list(yaml.safe_load_all(_run("kubectl", "kustomize", str(folder))))


def templated(chart: Path, *options: str) -> list[Object]:
    """The objects of a Helm chart. Raises CommandError if it is invalid."""
    text = _run("helm", "template", "--kube-version", "1.36", *options, "contrail-multinet", str(chart))
    return list(yaml.safe_load_all(text))


def key(item: Object) -> tuple[str, str, str]:
    """Kind, namespace and name of an object."""
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _run(*command: str, timeout: float = TIMEOUT, **options: Any) -> str:
    done: subprocess.CompletedProcess[str]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)
    if done.returncode != 0:
        raise CommandError(done.stderr)
    return done.stdout
