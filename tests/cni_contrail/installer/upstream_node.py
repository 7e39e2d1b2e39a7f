"""What Contrail's own plugin has on a node: its executable and its network configuration, as Contrail installs them."""

import json
import os
from pathlib import Path
from typing import Any

from tests.cni_contrail.installer.conftest import CONFLIST, PLUGIN, InstallerNode

CONF = "etc/cni/net.d/10-contrail.conf"
TF_CONF = "etc/cni/net.d/10-tf-cni.conf"  # as the operator of Tungsten Fabric names it
KEPT_CONF = f"{CONF}.upstream"
KEPT_PLUGIN = f"{PLUGIN}.upstream"

EXECUTABLE = b"\x7fELF upstream \x00\xff"


def upstream_document(**section: Any) -> dict[str, Any]:
    """The file as Contrail's installer writes it, with other keys in its section where given."""
    return {
        "cniVersion": "0.3.1",
        "contrail": {
            "cluster-name": "k8s",
            "meta-plugin": "multus",
            "vrouter-ip": "127.0.0.1",
            "vrouter-port": 9091,
            "config-dir": "/var/lib/contrail/ports/vm",
            "poll-timeout": 5,
            "poll-retries": 15,
            "log-file": "/var/log/contrail/cni/opencontrail.log",
            "log-level": "4",
            "mtu": 1500,
        }
        | section,
        "name": "contrail-k8s-cni",
        "type": "contrail-k8s-cni",
    }


def upstream_text(**section: Any) -> str:
    """The text of the file."""
    return json.dumps(upstream_document(**section), indent=4) + "\n"


class UpstreamNode(InstallerNode):
    """A node with Contrail's own plugin, and ours in the image, configured for the same agent at `port`."""

    port = 9091

    def install_upstream(self, conf: str = CONF, /, **section: Any) -> None:
        """Writes executable and configuration, as each start of Contrail's installer does."""
        self.path(PLUGIN).write_bytes(EXECUTABLE)
        self.path(PLUGIN).chmod(0o750)
        self.path(conf).write_text(upstream_text(**{"vrouter-port": self.port} | section))
        self.path(conf).chmod(0o640)
        for name in (PLUGIN, conf):
            os.utime(self.path(name), (1_600_000_000, 1_600_000_000))

    def configure_agent(self, port: int) -> None:
        """Has our plugin use the agent at the port of this host, without a Unix socket."""
        self.port = port
        self.configure("cni.json", json.dumps({"vrouter-ip": "127.0.0.1", "vrouter-port": port}))

    def snapshot(self) -> dict[str, tuple[bytes, int, float]]:
        """Contents, modes and times of the files that are Contrail's or take their names."""
        paths = [(name, self.path(name)) for name in (PLUGIN, CONF, TF_CONF) if self.path(name).exists()]
        return {name: (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime) for name, path in paths}

    def first_configuration(self) -> Path:
        """The configuration that a runtime uses."""
        return min(each for each in self.path(CONFLIST).parent.iterdir() if each.suffix in (".conf", ".conflist"))
