"""cnitool, the CNI project's minimal runtime: libcni on a network namespace given on the command line."""

import json
import shutil
import subprocess
from typing import Any

from tests.e2e.host import Host
from tests.e2e.node import NETWORK, PLUGIN_DIRS
from tests.e2e.sandbox import Sandbox


class Cnitool:
    """Runs cnitool on a host. Further keywords are environment variables: CNI_ARGS, CAP_ARGS, CNI_IFNAME."""

    def __init__(self, host: Host) -> None:
        self._host = host
        command = shutil.which("cnitool")
        assert command is not None, "cnitool is not in PATH: scripts/e2e installs it"
        self._command = command

    def call(
        self, command: str, sandbox: Sandbox, *, network: str = NETWORK, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs `cnitool COMMAND NETWORK NETNS` and returns the completed process."""
        return self._host.call(self._command, command, network, sandbox.path, CNI_PATH=PLUGIN_DIRS, **variables)

    def run(self, command: str, sandbox: Sandbox, *, network: str = NETWORK, **variables: str) -> str:
        """Runs a command that must succeed; returns its output."""
        ended = self.call(command, sandbox, network=network, **variables)
        assert ended.returncode == 0, (command, network, ended.stdout, ended.stderr)
        return ended.stdout

    def rejected(self, command: str, sandbox: Sandbox, *, network: str = NETWORK, **variables: str) -> str:
        """Runs a command that must fail; returns its standard error."""
        ended = self.call(command, sandbox, network=network, **variables)
        assert ended.returncode != 0, (command, network, ended.stdout)
        return ended.stderr

    def add(self, sandbox: Sandbox, *, network: str = NETWORK, **variables: str) -> dict[str, Any]:
        """Runs ADD and returns the result."""
        result: dict[str, Any] = json.loads(self.run("add", sandbox, network=network, **variables))
        return result
