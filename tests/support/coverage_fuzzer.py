"""Coverage-guided fuzzer of the plugin, with atheris: `coverage_fuzzer.py TARGET FOLDER SANDBOX`.

A separate program in a node's network namespace, since atheris ends the process. Calls are real, including their kernel
work; only the agent's responses are part of the input. A finding is an uncaught exception: an internal error in the
result, or a link or file that is left over. Further arguments are libFuzzer's.
"""

import contextlib
import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

import atheris

with atheris.instrument_imports(include=["cni_contrail"]):
    import cni_contrail.agent.http as http
    from cni_contrail.deadline import Deadline
    from cni_contrail.errors import PluginError
    from cni_contrail.plugin import CommandOutput, respond

COMMANDS = ("ADD", "DEL", "CHECK", "GC", "STATUS")
NETWORK = "contrail-k8s-cni"
BUG = 999
READ_RESPONSE = http.HttpExchange.response
ALWAYS_READY = os.open(os.devnull, os.O_RDONLY)


class Calls:
    """The plugin on a node; `response` is the agent's response to every request."""

    def __init__(self, folder: str, sandbox: str) -> None:
        self._state = f"{folder}/state"
        self._node_file = f"{folder}/cni.json"
        settings = {
            "state-dir": self._state,
            "config-dir": f"{folder}/ports",
            "agent-socket": f"{folder}/agent.sock",
            "log-file": "/dev/null",
            "poll-timeout": 0.001,
            "poll-retries": 1,
        }
        with open(self._node_file, "w") as file:
            json.dump(settings, file)
        self._sandbox = sandbox
        self.response = http.HttpResponse(404, b"")
        setattr(http.HttpExchange, "response", lambda _: self.response)  # noqa: B010 - there is no agent

    def execute(self, command: str, stdin: bytes, args: str = "") -> None:
        """Runs one call and the DEL that a runtime sends after it."""
        response = self._respond(command, stdin, args)
        if response.output:
            assert json.loads(response.output).get("code") != BUG, response.output
        if os.path.isdir(self._state):
            self._check_that_del_cleans_up()

    def _respond(self, command: str, stdin: bytes, args: str) -> CommandOutput:
        environment = {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": "c1",
            "CNI_NETNS": self._sandbox,
            "CNI_IFNAME": "eth0",
            "CNI_ARGS": args,
            "CNI_PATH": "/opt/cni/bin",
            "CONTRAIL_CNI_CONFIG": self._node_file,
        }
        return respond(environment, lambda: stdin)

    def _check_that_del_cleans_up(self) -> None:
        self.response = http.HttpResponse(200, b"{}")
        response = self._respond("DEL", config(), "")
        assert response.status == 0, response.output
        left = [name for name in os.listdir(self._state) if name != ".damaged"]
        assert left == [], left
        with open("/proc/thread-self/net/dev") as links:
            assert len(links.readlines()) == 3, "a link besides the loopback is left"


def config(**more: Any) -> bytes:
    return json.dumps({"cniVersion": "1.1.0", "name": NETWORK, **more}).encode()


def target(name: str, calls: Calls) -> Callable[[bytes], None]:
    """Returns the function that runs one input of a target."""

    def standard_input(data: bytes) -> None:
        calls.execute(COMMANDS[data[0] % len(COMMANDS)] if data else "ADD", data[1:])

    def arguments(data: bytes) -> None:
        calls.execute(COMMANDS[len(data) % len(COMMANDS)], config(), os.fsdecode(data.replace(b"\0", b"")))

    def answers(data: bytes) -> None:
        calls.response = http.HttpResponse(200, data)
        calls.execute("ADD", config())

    def wire(data: bytes) -> None:
        setattr(http, "connect", lambda *_: Connection(data))  # noqa: B010 - replaces the connection
        with contextlib.suppress(PluginError):
            READ_RESPONSE(http.HttpExchange(http.Endpoint("/x", "", 0), "GET", "/", b"", Deadline(5)))

    return {"stdin": standard_input, "args": arguments, "answers": answers, "wire": wire}[name]


class Connection:
    """A connection that delivers these bytes a few at a time."""

    def __init__(self, data: bytes) -> None:
        self._parts = [data[start : start + 7] for start in range(0, len(data), 7)]

    def fileno(self) -> int:
        return ALWAYS_READY

    def close(self) -> None:
        pass

    def send(self, data: bytes, flags: int) -> int:
        return len(data)

    def recv(self, size: int, flags: int) -> bytes:
        return self._parts.pop(0) if self._parts and not flags & socket.MSG_PEEK else b""


if __name__ == "__main__":
    _, name, folder, sandbox, *options = sys.argv
    atheris.Setup([sys.argv[0], *options], target(name, Calls(folder, sandbox)))
    atheris.Fuzz()
