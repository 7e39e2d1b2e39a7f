"""A node with Multus on it, thin or thick, set up with the files that `deploy/multus` gives as examples.

Everything is at its usual place: the node is a machine of its own, so nothing of the real one's is used or changed.
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
_MENDED = "/run/mended"
_BROKEN = f"""#!/bin/sh
[ "$CNI_COMMAND" = ADD ] || exit 0
[ -e {_MENDED} ] && echo '{{"cniVersion": "1.0.0"}}' && exit
echo '{{"code": 100, "msg": "broken on purpose"}}'
exit 1
"""
_READ = (".conf", ".conflist", ".json")  # by runtimes
_DEBIANS = ("bridge", "macvlan", "host-local", "tuning", "loopback")
_MULTUS = ("multus", "multus-shim", "multus-daemon")


def default_network(name: str, *more: str) -> dict[str, Any]:
    """Multus's settings for a default network, ours or the foreign one, and `more` that each pod is attached to."""
    file = _FOREIGN_CONFIGURATION if name == FOREIGN_DEFAULT else str(CONFIGURATIONS / "10-contrail.conflist")
    return {"delegates": [], "clusterNetwork": file, "defaultNetworks": list(more)}


class Node:
    """One that runs: `name` in the cluster, agent and plugin on it; Multus is started by who wants it."""

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
        host.run("install", "-m", "0600", str(DEPLOY / "cni" / "10-contrail.conflist"), str(CONFIGURATIONS))
        for name in _MULTUS:
            host.run("ln", "-s", _command(name), str(BINARIES))
        _install_foreign_plugins(host)
        installation.install(host)

    @contextlib.contextmanager
    def running_agent(self) -> Iterator[None]:
        """The agent runs in the node's network namespace until the context is left."""
        try:
            self.start_agent()
            yield
        finally:
            self.agent.kill()

    def start_agent(self) -> None:
        """Starts the agent and returns when it is ready."""
        with self.host.net.inside():
            self.agent.start()

    def ports(self) -> dict[Path, str]:
        """Files of all ports that the agent has been told of, and keeps; each names its container."""
        return _texts(self.agent.ports)

    @contextlib.contextmanager
    def plugin_settings(self, **settings: str) -> Iterator[None]:
        """Puts settings over those of the plugin's node-wide file, until the context is left."""
        file = self.host.path(_PLUGIN_SETTINGS)
        before = file.read_text()
        file.write_text(json.dumps({**json.loads(before), **settings}))
        try:
            yield
        finally:
            file.write_text(before)

    @contextlib.contextmanager
    def repaired(self) -> Iterator[None]:
        """The plugin that fails does not, until the context is left; it still makes nothing."""
        flag = self.host.path(_MENDED)
        flag.touch()
        try:
            yield
        finally:
            flag.unlink()

    def configuration(self) -> dict[str, Any]:
        """What a runtime reads: the first file of its folder."""
        first = min(path for path in self.host.path(str(CONFIGURATIONS)).iterdir() if path.suffix in _READ)
        document: dict[str, Any] = json.loads(first.read_text())
        return document

    def state(self, folder: str) -> dict[Path, str]:
        """Text of all files below a folder of the node."""
        return _texts(self.host.path(folder))


def _texts(top: Path) -> dict[Path, str]:
    found = {}
    for folder, _, names in os.walk(top):
        for file in (Path(folder, name) for name in names):
            with contextlib.suppress(OSError):  # a socket, or gone meanwhile
                found[file] = file.read_text(errors="replace")
    return found


def _install_foreign_plugins(host: Host) -> None:
    """Debian's, one that fails, and a default network that takes the place of ours."""
    for name in _DEBIANS:
        host.run("ln", "-s", f"/usr/lib/cni/{name}", str(BINARIES))
    broken = host.path(str(BINARIES / "broken"))
    broken.write_text(_BROKEN)
    broken.chmod(0o755)
    host.run("ip", "link", "add", UPLINK, "up", "type", "veth", "peer", "name", f"{UPLINK}-far")
    host.run("ip", "link", "add", FOREIGN_BRIDGE, "address", "02:00:00:00:00:01", "type", "bridge")
    ipam = {"type": "host-local", "subnet": "10.92.0.0/16"}
    bridge = {"type": "bridge", "bridge": FOREIGN_BRIDGE, "isDefaultGateway": True, "ipam": ipam}
    # no list: what Multus hands to DEL of a list lacks all that is not of the specification, so a bridge its addresses
    document = {"cniVersion": "1.0.0", "name": FOREIGN_DEFAULT, **bridge}
    host.path(_FOREIGN_CONFIGURATION).write_text(json.dumps(document))


def _command(name: str) -> str:
    found = shutil.which(name)
    assert found is not None, f"{name} is not in PATH: scripts/e2e builds it"
    return found
