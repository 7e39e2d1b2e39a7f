"""Multus thin and thick, installed with the example files of `deploy/multus`, and the kinds of nodes that run them."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from tests.e2e.multus.cluster import DEPLOY
from tests.e2e.multus.node import BINARIES, CONFIGURATIONS, Node
from tests.e2e.plugin_installation import EntryPointInstallation, PluginInstallation, ShimInstallation
from tests.e2e.polling import wait_until
from tests.support.real_apiserver.server import ApiServer

_CONFIGURATION_OF_THIN = DEPLOY / "multus" / "thin" / "00-multus.conflist"
_CONFIGURATION_OF_THICK = "00-multus.conf"
_PID = "/run/multus-daemon.pid"
_ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"


class RunningMultus(Protocol):
    """Multus on a node."""

    node: Node

    def start(self) -> None:
        """Starts it and waits until the runtime can call it."""

    def kill(self) -> None:
        """Kills its processes. Idempotent."""


class ThinMultus:
    """Multus thin: a self-contained plugin."""

    def __init__(self, node: Node, server: ApiServer, _work: Path) -> None:
        self.node = node
        folder = node.host.path(str(CONFIGURATIONS))
        (folder / "multus.d").mkdir()
        shutil.copy(server.kubeconfig(), folder / "multus.d" / "multus.kubeconfig")
        shutil.copy(_CONFIGURATION_OF_THIN, folder)

    def start(self) -> None:
        """No process runs between calls."""

    def kill(self) -> None:
        """No process runs between calls."""


class ThickMultus:
    """Multus thick: a shim, and a daemon that writes the runtime's configuration."""

    def __init__(self, node: Node, server: ApiServer, work: Path) -> None:
        self.node = node
        self._log = work / "multus-daemon.log"
        self._url = server.url
        self._process: subprocess.Popen[str] | None = None
        account = node.host.path(_ACCOUNT)
        account.mkdir(parents=True)
        shutil.copy(server.authority, account / "ca.crt")
        (account / "token").write_text(_token(server))
        self._configuration = account / "daemon-config.json"
        self._configuration.write_text(json.dumps(_with_host_paths(_read_daemon_configuration())))

    def start(self) -> None:
        """Starts the daemon and waits until the runtime can call the shim."""
        host, _, port = self._url.removeprefix("https://").partition(":")
        variables = {
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "MULTUS_NODE_NAME": self.node.name,
            "PATH": os.environ["PATH"],
        }
        environment = (f"{name}={value}" for name, value in variables.items())
        command = f"echo $$ > {_PID}; exec {BINARIES}/multus-daemon --config={_ACCOUNT}/daemon-config.json"
        with self._log.open("a") as log:
            self._process = self.node.host.start("env", "-i", *environment, "sh", "-c", command, stdout=log, stderr=log)
        wait_until(self._is_ready, what="multus-daemon ready", otherwise=self._log.read_text)

    def kill(self) -> None:
        """Kills the daemon; the configuration that it wrote remains. Idempotent."""
        if self._process is not None:
            self.node.host.run("kill", "-KILL", self.node.host.path(_PID).read_text().strip())
            self._process.wait(10)
            self._process = None
            self.node.host.path("/run/multus/multus.sock").unlink()

    def _is_ready(self) -> bool:
        paths = ("/run/multus/multus.sock", str(CONFIGURATIONS / _CONFIGURATION_OF_THICK))
        return all(self.node.host.path(path).exists() for path in paths)


class NodeKind(NamedTuple):
    """Software on a node; `name` is part of test IDs."""

    name: str
    multus: Callable[[Node, ApiServer, Path], RunningMultus]
    installation: PluginInstallation


THIN = NodeKind("thin", ThinMultus, ShimInstallation())
THICK = NodeKind("thick", ThickMultus, ShimInstallation())
THIN_AND_ENTRY_POINT = NodeKind("thin and entry point", ThinMultus, EntryPointInstallation())
THICK_AND_ENTRY_POINT = NodeKind("thick and entry point", ThickMultus, EntryPointInstallation())


def only_on(*kinds: NodeKind) -> pytest.MarkDecorator:
    """Runs a test on these kinds of nodes instead of the default ones (Multus thin and thick with the shim)."""
    return pytest.mark.parametrize("multus", kinds, indirect=True, ids=lambda kind: kind.name)


def _read_daemon_configuration() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((DEPLOY / "multus" / "thick" / "daemon-config.json").read_text())
    return document


def _with_host_paths(configuration: dict[str, Any]) -> dict[str, Any]:
    """Replaces the paths of Multus's container by those of the host."""
    paths = {key: value.removeprefix("/host") for key, value in configuration.items() if isinstance(value, str)}
    return {**configuration, **paths, "chrootDir": "/"}


def _token(server: ApiServer) -> str:
    token: str = json.loads(server.kubeconfig().read_text())["users"][0]["user"]["token"]
    return token
