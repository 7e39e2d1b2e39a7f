"""Installations of the plugin on a host: the Python entry point, or the native shim with the daemon."""

import sys
from pathlib import Path
from typing import Protocol

from tests.e2e.host import Host
from tests.e2e.polling import wait_until
from tests.support.shim import build_shim

COMMANDS = Path(sys.executable).parent
PLUGIN = "contrail-k8s-cni"
_DAEMON = "contrail-cnid"
_LOG = "/run/contrail-cnid.log"
_START = f"""
unshare --mount --propagation=private --pid --fork --mount-proc sh -ec '
    umount --recursive --lazy /run/netns
    exec {COMMANDS / _DAEMON}
' > {_LOG} 2>&1 &
"""


class PluginInstallation(Protocol):
    """An installation; `name` is part of test IDs."""

    name: str

    def install(self, host: Host) -> None:
        """Installs the plugin and starts everything that it needs."""


class EntryPointInstallation:
    """The Python entry point: each call is a self-contained process."""

    name = "entry point"

    def install(self, host: Host) -> None:
        host.run("ln", "-s", str(COMMANDS / PLUGIN), "/opt/cni/bin/")


class ShimInstallation:
    """The native shim, and a daemon that ends with the host.

    As in a container, the daemon sees neither the node's processes nor its mounts under /run/netns.
    """

    name = "shim"

    def install(self, host: Host) -> None:
        host.run("install", build_shim(), f"/opt/cni/bin/{PLUGIN}")
        log = host.path(_LOG)
        host.run("sh", "-c", _START)
        wait_until(
            lambda: log.exists() and "is serving at" in log.read_text(),
            what="daemon ready",
            otherwise=log.read_text,
        )
