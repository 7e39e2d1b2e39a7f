"""Operators who run `contrailctl` beside kubectl, each with the rights that its documentation names for one command."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.kubelet.cluster import NAMESPACE, WORKLOADS, Cluster
from tests.support.cluster_processes import BINARIES

_FILE = str(WORKLOADS / "operators.yaml")
_NAMES = ("status", "trace", "sysdump")
_TIMEOUT = 120.0


class Ended(NamedTuple):
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Its output, if that is JSON."""
        found: dict[str, Any] = json.loads(self.out)
        return found


class Operators:
    """Runs commands with the accounts of `workloads/operators.yaml`; their kubeconfigs are below `folder`."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self.tokens = {name: cluster("create", "token", name).strip() for name in _NAMES}
        template = json.loads(cluster.kubectl("config", "view", "--raw", "--output", "json"))
        for name, token in self.tokens.items():
            template["users"][0]["user"] = {"token": token}
            self.kubeconfig(name).write_text(json.dumps(template))

    def kubeconfig(self, name: str) -> Path:
        """The file with the credentials of an operator."""
        return self._folder / f"{name}.kubeconfig"

    def run(self, name: str, *command: str) -> Ended:
        """Runs a command as an operator does whose PATH has kubectl and the programs of this release."""
        variables = f"KUBECONFIG={self.kubeconfig(name)}", f"PATH={BINARIES}:{os.environ['PATH']}"
        with self._cluster.kubectl.start("env", *variables, *command) as process:
            out, err = process.communicate(timeout=_TIMEOUT)
        return Ended(process.returncode, out, err)

    def status(self, *options: str) -> Ended:
        """Runs `kubectl contrail status`."""
        return self.run("status", "kubectl", "contrail", "status", *options)

    def trace(self, pod: str, *options: str) -> Ended:
        """Runs `contrailctl trace` for a pod of the users."""
        return self.run("trace", "contrailctl", "trace", f"{NAMESPACE}/{pod}", *options)


@contextlib.contextmanager
def operators_of(cluster: Cluster, folder: Path) -> Iterator[Operators]:
    """Creates the accounts, and deletes them at the end."""
    cluster.kubectl("apply", "-f", _FILE)
    try:
        yield Operators(cluster, folder)
    finally:
        cluster.kubectl("delete", "-f", _FILE)
