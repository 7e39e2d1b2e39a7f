"""Scripted CNI plugins that record their calls, with configurations and results for them."""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from cni_contrail.runtime.attachment import Attachment
from cni_contrail.runtime.configuration import NetworkList, parse_list

_PLUGIN = """#!{python} -IS
import json, os, sys
stdin = sys.stdin.read()
with open({calls!r}, "a") as calls:
    calls.write(json.dumps({{"plugin": {name!r}, "environment": dict(os.environ), "stdin": json.loads(stdin)}}) + "\\n")
stdout, stderr, status = {answers!r}.get(os.environ["CNI_COMMAND"], ("", "", 0))
sys.stdout.write(stdout)
sys.stderr.write(stderr)
sys.exit(status)
"""


class PluginOutput(NamedTuple):
    """Output and exit status of a scripted plugin."""

    stdout: str = ""
    stderr: str = ""
    status: int = 0


class Call(NamedTuple):
    """A recorded call of a scripted plugin."""

    plugin: str
    environment: dict[str, str]
    stdin: dict[str, Any]

    @property
    def command(self) -> str:
        return self.environment["CNI_COMMAND"]


class Plugins:
    """A directory of scripted plugins and the record of their calls."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._calls = directory / "calls.jsonl"

    def script(self, name: str, **answers: PluginOutput) -> None:
        """Creates a plugin with outputs by command (`ADD=PluginOutput(...)`); others succeed without output."""
        plain = {command: tuple(answer) for command, answer in answers.items()}
        self.write(name, _PLUGIN.format(python=sys.executable, calls=str(self._calls), name=name, answers=plain))

    def write(self, name: str, text: str) -> Path:
        """Creates an executable with this text."""
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def calls(self) -> list[Call]:
        """All calls so far, in order."""
        if not self._calls.exists():
            return []
        return [Call(**json.loads(line)) for line in self._calls.read_text().splitlines()]

    def forget_calls(self) -> None:
        """Clears the record of calls."""
        self._calls.unlink(missing_ok=True)


def result(version: str = "1.0.0", **parts: Any) -> dict[str, Any]:
    """A result with one interface and one address, in a version from 0.3.0 on."""
    address: dict[str, Any] = {"address": "10.1.0.5/24", "interface": 0}
    if version.startswith("0."):
        address["version"] = "4"
    return {"cniVersion": version, "interfaces": [{"name": "eth0", "sandbox": "/run/x"}], "ips": [address], **parts}


def added(document: dict[str, Any] | None = None) -> PluginOutput:
    """The output of a successful ADD."""
    return PluginOutput(json.dumps(result() if document is None else document))


def network(*plugins: dict[str, Any] | str, version: str = "1.0.0", **keys: Any) -> NetworkList:
    """A network list `net` of these plugins, given as configurations or as types."""
    configurations = [{"type": plugin} if isinstance(plugin, str) else plugin for plugin in plugins]
    document = {"cniVersion": version, "name": "net", "plugins": configurations, **keys}
    return parse_list(json.dumps(document).encode(), origin="test.conflist")


POD = Attachment("c" * 64, "/run/netns/pod", "eth0")
