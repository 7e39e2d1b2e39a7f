"""Virtual networks of a node under test: their namespaces are in a directory of its own."""

import json
import subprocess
from pathlib import Path

from cni_contrail.datapath.namespaces import Namespaces


class NodeNetworks:
    """Networks below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.namespaces = Namespaces(str(folder))

    def run(self, vni: int, *command: str) -> str:
        """Runs a command in a network's namespace and returns its output."""
        within = ["nsenter", f"--net={self.namespaces.path(vni)}", "--", *command]
        return subprocess.run(within, check=True, capture_output=True, text=True, timeout=20).stdout

    def ports(self, vni: int) -> list[str]:
        """Names of the ports of a network's bridge."""
        found = json.loads(self.run(vni, "ip", "-json", "link", "show", "master", "br0") or "[]")
        return [each["ifname"] for each in found]

    def close(self) -> None:
        """Removes all."""
        for vni in self.namespaces.existing():
            self.namespaces.delete(vni)
        subprocess.run(["umount", "--lazy", str(self.folder)], check=False, capture_output=True)
