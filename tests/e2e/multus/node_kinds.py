"""The two kinds of Multus, installed by the example files of `deploy/multus`, and nodes that have either."""

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

_CONFIGURATION = "00-multus.conf"
_PID = "/run/multus-daemon.pid"
_ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"


class RunningMultus(Protocol):
    """What runs of it on a node."""

    node: Node

    def start(self) -> None:
        """Returns when the runtime may call."""

    def kill(self) -> None:
        """Ends it as a crash would; nothing if it does not run."""


class ThinMultus:
    """A plugin that does everything itself."""

    def __init__(self, node: Node, server: ApiServer, _work: Path) -> None:
        self.node = node
        folder = node.host.path(str(CONFIGURATIONS))
        (folder / "multus.d").mkdir()
        shutil.copy(server.kubeconfig(), folder / "multus.d" / "multus.kubeconfig")
        shutil.copy(DEPLOY / "multus" / "thin" / _CONFIGURATION, folder)

    def start(self) -> None:
        """Nothing runs of it between calls."""

    def kill(self) -> None:
        """Nothing runs of it between calls."""


class ThickMultus:
    """A shim and a daemon, which writes the configuration for the runtime itself."""

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
        self._configuration.write_text(json.dumps(_outside_of_a_container(_read_daemon_configuration())))

    def start(self) -> None:
        """Starts it and returns when the runtime may call."""
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
        wait_until(self._is_ready, what="served by multus-daemon", otherwise=self._log.read_text)

    def kill(self) -> None:
        """Ends it as a crash would: what it wrote for the runtime stays."""
        if self._process is not None:
            self.node.host.run("kill", "-KILL", self.node.host.path(_PID).read_text().strip())
            self._process.wait(10)
            self._process = None
            self.node.host.path("/run/multus/multus.sock").unlink()

    def _is_ready(self) -> bool:
        places = ("/run/multus/multus.sock", str(CONFIGURATIONS / _CONFIGURATION))
        return all(self.node.host.path(place).exists() for place in places)


class NodeKind(NamedTuple):
    """What is on a node; `name` is a part of test ids."""

    name: str
    multus: Callable[[Node, ApiServer, Path], RunningMultus]
    installation: PluginInstallation


THIN = NodeKind("thin", ThinMultus, ShimInstallation())
THICK = NodeKind("thick", ThickMultus, ShimInstallation())
THIN_AND_ENTRY_POINT = NodeKind("thin and entry point", ThinMultus, EntryPointInstallation())
THICK_AND_ENTRY_POINT = NodeKind("thick and entry point", ThickMultus, EntryPointInstallation())


def only_on(*kinds: NodeKind) -> pytest.MarkDecorator:
    """Has a test run on these kinds of node instead of on those with either Multus and the shim."""
    return pytest.mark.parametrize("multus", kinds, indirect=True, ids=lambda kind: kind.name)


def _read_daemon_configuration() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((DEPLOY / "multus" / "thick" / "daemon-config.json").read_text())
    return document


def _outside_of_a_container(configuration: dict[str, Any]) -> dict[str, Any]:
    """The same with the host's own paths for those under which Multus's container sees them."""
    paths = {key: value.removeprefix("/host") for key, value in configuration.items() if isinstance(value, str)}
    return {**configuration, **paths, "chrootDir": "/"}


def _token(server: ApiServer) -> str:
    token: str = json.loads(server.kubeconfig().read_text())["users"][0]["user"]["token"]
    return token
