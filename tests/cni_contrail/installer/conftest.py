"""A node's directories, the files that are to be installed there, and a plugin that says whether the node is ready."""

import json
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.installer.installation import Installation
from cni_contrail.installer.keeper import Keeper
from cni_contrail.installer.paths import Paths
from cni_contrail.installer.report import Report, read_report
from cni_contrail.installer.uninstaller import Uninstaller
from cni_contrail.log import Log
from tests.support.scripted_agents import ReceivedRequest, Reply, ScriptedAgent

PLUGIN = "opt/cni/bin/contrail-k8s-cni"
LOOPBACK = "opt/cni/bin/loopback"
OUR_LOOPBACK = "opt/cni/bin/contrail-loopback"
SETTINGS = "etc/contrail/cni.json"
CONFLIST = "etc/cni/net.d/10-contrail.conflist"
ALL = sorted([PLUGIN, LOOPBACK, OUR_LOOPBACK, SETTINGS, CONFLIST])

_SCRIPT = """#!/bin/sh
# Contains CONTRAIL_CNI_SOCKET, as the shim.
test -e {ready} && exit 0
echo '{{"cniVersion": "1.1.0", "code": 50, "msg": "no daemon"}}'
exit 1
"""


def network_list(plugin: str = "contrail-k8s-cni", name: str = "contrail-k8s-cni") -> str:
    """A network configuration list with one plugin."""
    return json.dumps({"cniVersion": "1.0.0", "name": name, "plugins": [{"type": plugin}]})


class InstallerNode:
    """A node at `root`, and what is to be installed there."""

    def __init__(self, folder: Path, agent: ScriptedAgent, root: Path | None = None) -> None:
        self.root = root or folder / "node"
        self.paths = Paths(
            str(self.root),
            str(folder / "configuration"),
            str(folder / "plugins"),
            str(folder / "run"),
            str(folder / "run/cni"),
        )
        for directory in ("opt/cni/bin", "etc/cni/net.d", "etc/contrail"):
            (self.root / directory).mkdir(parents=True)
        for path in (self.paths.configuration, self.paths.plugins, self.paths.run_dir):
            Path(path).mkdir()
        self._ready = folder / "ready"
        self.set_ready()
        self.report: Any = {"problems": {}}
        self.serve_report(agent)
        self.configure("contrail-k8s-cni", _SCRIPT.format(ready=self._ready))
        self.configure("loopback", "loopback of the image")
        self.configure("cni.json", json.dumps({"agent-socket": agent.socket_path}))
        self.configure("10-contrail.conflist", network_list())
        self.log = Log()

    def configure(self, name: str, content: str | None) -> None:
        """Changes what is to be installed; None removes it."""
        is_plugin = name in ("contrail-k8s-cni", "loopback")
        path = Path(self.paths.plugins if is_plugin else self.paths.configuration) / name
        if content is None:
            path.unlink()
        else:
            path.write_text(content)
            path.chmod(0o755)

    def serve_report(self, agent: ScriptedAgent) -> None:
        """Has the agent serve `report`."""
        agent.before(self._datapath_report)

    def set_ready(self, *, is_ready: bool = True) -> None:
        """Lets the plugin answer STATUS with success, or error 50."""
        self._ready.touch() if is_ready else self._ready.unlink()

    def keeper(self) -> Keeper:
        """A new process that installs."""
        return Keeper(self.paths, self.log)

    def uninstaller(self) -> Uninstaller:
        """A new process that uninstalls."""
        return Uninstaller(self.paths, self.log)

    def installation(self) -> Installation:
        """The files of the node."""
        return Installation(str(self.root), self.log)

    def look(self) -> Report:
        """Lets a new process look once; returns its report."""
        self.keeper().look()
        return self.reported()

    def reported(self) -> Report:
        """The report in the run directory, without the digest of what is installed."""
        report = read_report(self.paths.run_dir)
        assert report is not None
        return report._replace(source="")

    def path(self, name: str) -> Path:
        """A file on the node."""
        return self.root / name

    def files(self) -> list[str]:
        """All files on the node, those of other plugins included."""
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir())

    def _datapath_report(self, seen: ReceivedRequest) -> Reply | None:
        return Reply(200, {"report": self.report}) if seen.path == "/datapath/report" else None


@pytest.fixture
def installer_node(tmp_path: Path, agent: ScriptedAgent) -> InstallerNode:
    return InstallerNode(tmp_path, agent)
