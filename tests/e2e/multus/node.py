"""Node with Multus thin or thick, installed with the example files of `deploy/multus`.

All files have their usual paths: the node is a temporary host, so nothing of the real host is used or changed.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.e2e.host import Host
from tests.e2e.multus.cluster import DEPLOY
from tests.e2e.plugin_installation import PluginInstallation
from tests.support.cluster_processes import AgentProcess
from tests.support.real_apiserver.server import ApiServer

BINARIES = Path("/opt/cni/bin")
CONFIGURATIONS = Path("/etc/cni/net.d")
FOREIGN_BRIDGE = "foreign0"
FOREIGN_DEFAULT = "foreign-default"
UPLINK = "uplink0"

_FOREIGN_CONFIGURATION = f"/etc/cni/{FOREIGN_DEFAULT}.conf"
_PLUGIN_SETTINGS = "/etc/contrail/cni.json"
_REPAIRED = "/run/repaired"
_BROKEN = f"""#!/bin/sh
[ "$CNI_COMMAND" = ADD ] || exit 0
[ -e {_REPAIRED} ] && echo '{{"cniVersion": "1.0.0"}}' && exit
echo '{{"code": 100, "msg": "broken on purpose"}}'
exit 1
"""
_READ = (".conf", ".conflist", ".json")  # suffixes that runtimes read
_DEBIANS = ("bridge", "macvlan", "host-local", "tuning", "loopback")
_MULTUS = ("multus", "multus-shim", "multus-daemon")


def default_network(name: str, *more: str) -> dict[str, Any]:
    """Multus's settings for a default network, this plugin's or the foreign one; `more` are attached to every pod."""
    file = _FOREIGN_CONFIGURATION if name == FOREIGN_DEFAULT else str(CONFIGURATIONS / "10-contrail.conflist")
    return {"delegates": [], "clusterNetwork": file, "defaultNetworks": list(more)}


class Node:
    """A node `name` of the cluster with agent and plugin; Multus is started separately."""

    def __init__(self, name: str, host: Host, work: Path, server: ApiServer, installation: PluginInstallation) -> None:
        self.name = name
        self.host = host
        self.agent = AgentProcess(work, server.kubeconfig(), node=name)
        self._install(installation)

    def _install(self, installation: PluginInstallation) -> None:
        host = self.host
        host.path("/run/contrail").mkdir(exist_ok=True)
        host.path("/run/contrail/agent.sock").symlink_to(self.agent.socket)
        host.run("install", "-m", "0600", str(DEPLOY / "multus" / "cni.json"), _PLUGIN_SETTINGS)
        host.run("install", "-m", "0600", str(DEPLOY / "multus" / "10-contrail.conflist"), str(CONFIGURATIONS))
        for name in _MULTUS:
            host.run("ln", "-s", _command(name), str(BINARIES))
        _install_foreign_plugins(host)
        installation.install(host)

    @contextlib.contextmanager
    def running_agent(self) -> Iterator[None]:
        """Runs the agent in the node's network namespace until the context is left."""
        try:
            self.start_agent()
            yield
        finally:
            self.agent.kill()

    def start_agent(self) -> None:
        """Starts the agent and waits until it is ready."""
        with self.host.net.inside():
            self.agent.start()

    def ports(self) -> dict[Path, str]:
        """Files of all ports in the agent; each contains its container ID."""
        return _texts(self.agent.ports)

    @contextlib.contextmanager
    def plugin_settings(self, **settings: str) -> Iterator[None]:
        """Overrides settings in the plugin's node-wide file until the context is left."""
        file = self.host.path(_PLUGIN_SETTINGS)
        before = file.read_text()
        file.write_text(json.dumps({**json.loads(before), **settings}))
        try:
            yield
        finally:
            file.write_text(before)

    @contextlib.contextmanager
    def repaired(self) -> Iterator[None]:
        """Makes the failing plugin succeed until the context is left; it creates no interface."""
        flag = self.host.path(_REPAIRED)
        flag.touch()
        try:
            yield
        finally:
            flag.unlink()

    def configuration(self) -> dict[str, Any]:
        """The configuration that a runtime passes on: that of the only plugin in the first file of the folder."""
        first = min(path for path in self.host.path(str(CONFIGURATIONS)).iterdir() if path.suffix in _READ)
        document: dict[str, Any] = json.loads(first.read_text())
        plugins: list[dict[str, Any]] = document.pop("plugins", [{}])
        (plugin,) = plugins
        return document | plugin

    def state(self, folder: str) -> dict[Path, str]:
        """Text of all files below a folder of the node."""
        return _texts(self.host.path(folder))


def _texts(top: Path) -> dict[Path, str]:
    found = {}
    for folder, _, names in os.walk(top):
        for file in (Path(folder, name) for name in names):
            with contextlib.suppress(OSError):  # a socket, or deleted since os.walk listed it
                found[file] = file.read_text(errors="replace")
    return found


def _install_foreign_plugins(host: Host) -> None:
    """Installs Debian's plugins, a failing one, and a default network that replaces this plugin's."""
    for name in _DEBIANS:
        host.run("ln", "-s", f"/usr/lib/cni/{name}", str(BINARIES))
    broken = host.path(str(BINARIES / "broken"))
    broken.write_text(_BROKEN)
    broken.chmod(0o755)
    host.run("ip", "link", "add", UPLINK, "up", "type", "veth", "peer", "name", f"{UPLINK}-far")
    host.run("ip", "link", "add", FOREIGN_BRIDGE, "address", "02:00:00:00:00:01", "type", "bridge")
    ipam = {"type": "host-local", "subnet": "10.92.0.0/16"}
    bridge = {"type": "bridge", "bridge": FOREIGN_BRIDGE, "isDefaultGateway": True, "ipam": ipam}
    # Not a list: for DEL of a list, Multus passes only keys of the specification, so the bridge would lack its IPAM.
    document = {"cniVersion": "1.0.0", "name": FOREIGN_DEFAULT, **bridge}
    host.path(_FOREIGN_CONFIGURATION).write_text(json.dumps(document))


def _command(name: str) -> str:
    found = shutil.which(name)
    assert found is not None, f"{name} is not in PATH: scripts/e2e builds it"
    return found
