"""The ways in which the plugin is put on a node; all tests can run by either."""

import sys
from pathlib import Path
from typing import Protocol

from tests.e2e.machine import Machine
from tests.e2e.waiting import wait_until
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


class Way(Protocol):
    """`name` is a part of test ids."""

    name: str

    def install(self, machine: Machine) -> None:
        """Puts the plugin at its place, with all that it needs to answer calls."""


class EntryPoint:
    """The Python entry point: all of the plugin in the process of each call."""

    name = "entry point"

    def install(self, machine: Machine) -> None:
        machine.run("ln", "-s", str(COMMANDS / PLUGIN), "/opt/cni/bin/")


class ShimAndDaemon:
    """The native shim, and a daemon that ends with the machine.

    As in a container, the daemon sees neither the processes of the node nor what it names under /run/netns.
    """

    name = "shim"

    def install(self, machine: Machine) -> None:
        machine.run("install", build_shim(), f"/opt/cni/bin/{PLUGIN}")
        log = machine.path(_LOG)
        machine.run("sh", "-c", _START)
        wait_until(
            lambda: log.exists() and "is serving at" in log.read_text(),
            what="served by the daemon",
            otherwise=log.read_text,
        )
