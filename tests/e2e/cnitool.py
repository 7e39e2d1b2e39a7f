"""cnitool, the CNI project's own small runtime: libcni on the namespace that the command line names."""

import json
import shutil
import subprocess
from typing import Any

from tests.e2e.host import Host
from tests.e2e.node import NETWORK, PLUGIN_DIRS
from tests.e2e.sandbox import Sandbox


class Cnitool:
    """Runs it in a machine. Further keywords are environment variables: CNI_ARGS, CAP_ARGS, CNI_IFNAME."""

    def __init__(self, host: Host) -> None:
        self._machine = host
        command = shutil.which("cnitool")
        assert command is not None, "cnitool is not in PATH: scripts/e2e installs it"
        self._command = command

    def call(
        self, command: str, sandbox: Sandbox, *, network: str = NETWORK, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs `cnitool COMMAND NETWORK NETNS` and returns how it ended."""
        return self._machine.call(self._command, command, network, sandbox.path, CNI_PATH=PLUGIN_DIRS, **variables)

    def run(self, command: str, sandbox: Sandbox, *, network: str = NETWORK, **variables: str) -> str:
        """The same for a command that succeeds; returns what it printed."""
        ended = self.call(command, sandbox, network=network, **variables)
        assert ended.returncode == 0, (command, network, ended.stdout, ended.stderr)
        return ended.stdout

    def rejected(self, command: str, sandbox: Sandbox, *, network: str = NETWORK, **variables: str) -> str:
        """The same for a command that fails; returns what it said."""
        ended = self.call(command, sandbox, network=network, **variables)
        assert ended.returncode != 0, (command, network, ended.stdout)
        return ended.stderr

    def add(self, sandbox: Sandbox, *, network: str = NETWORK, **variables: str) -> dict[str, Any]:
        """Attaches the sandbox and returns the result."""
        result: dict[str, Any] = json.loads(self.run("add", sandbox, network=network, **variables))
        return result
