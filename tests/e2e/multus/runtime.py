"""containerd as a CNI plugin sees it: calls with their environment and standard input.

A sandbox is a network namespace and a container ID; each attempt of kubelet to start a pod creates a new one. CNI_ARGS
and the environment are in random order, CHECK and DEL have the previous result, and DEL has no namespace once it is
deleted.
"""

import json
import random
import subprocess
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.multus.cluster import Pod
from tests.e2e.multus.node import BINARIES, Node

_IFNAME = "eth0"
_TIMEOUT = 90.0
_TRIES = 5


@dataclass(frozen=True)
class Outcome:
    """Exit status and output of a call."""

    status: int
    stdout: str
    stderr: str

    def succeeded(self) -> Any:
        """The parsed output, None without output; fails the test if the call failed."""
        assert self.status == 0, (self.stdout, self.stderr[-3000:])
        return json.loads(self.stdout) if self.stdout.strip() else None

    def failed(self) -> str:
        """The error message; fails the test if the call succeeded."""
        assert self.status != 0, self.stdout
        message: str = json.loads(self.stdout)["msg"]
        return message


@dataclass
class Sandbox:
    """A sandbox of a pod. `settings` override the node's configuration of Multus; `result` is that of ADD.

    `uid` is the pod's uid in kubelet if it differs from that of the pod object.
    """

    pod: Pod
    node: Node
    settings: Mapping[str, Any] = field(default_factory=dict)
    uid: str = ""
    name: str = field(default_factory=lambda: f"cni-{uuid.uuid4()}")
    container: str = field(default_factory=lambda: uuid.uuid4().hex * 2)
    result: Any = None

    def __post_init__(self) -> None:
        self.node.host.run("ip", "netns", "add", self.name)

    @property
    def netns(self) -> str:
        """Path of the network namespace; empty if it is deleted."""
        path = f"/run/netns/{self.name}"
        return path if self.node.host.path(path).exists() else ""

    @property
    def ports(self) -> list[Path]:
        """Files of its ports."""
        return [file for file, text in self.node.ports().items() if self.container in text]

    def ip(self, *arguments: str) -> str:
        """Runs `ip` in the namespace and returns its output."""
        return self.node.host.run("ip", "-n", self.name, *arguments)

    def remove(self) -> None:
        """Deletes the network namespace. Idempotent."""
        if self.netns:
            self.node.host.run("ip", "netns", "del", self.name)

    def variables(self, command: str, ifname: str) -> dict[str, str]:
        """Environment variables of a call."""
        pairs = {
            "K8S_POD_NAMESPACE": self.pod.namespace,
            "K8S_POD_NAME": self.pod.name,
            "K8S_POD_INFRA_CONTAINER_ID": self.container,
            "K8S_POD_UID": self.uid or self.pod.uid,
            "IgnoreUnknown": "1",
        }
        variables = {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": self.container,
            "CNI_NETNS": self.netns,
            "CNI_IFNAME": ifname,
            "CNI_ARGS": ";".join(f"{key}={value}" for key, value in _shuffled(pairs).items()),
            "CNI_PATH": str(BINARIES),
        }
        return _shuffled(variables)

    def add(self) -> Outcome:
        """ADD with the node's configuration; stores the result.

        Multus waits only 0.25 s for the pod from the API server. If that times out, kubelet would retry, and so does
        this method.
        """
        outcome = self._call("ADD")
        for _ in range(_TRIES):
            if "error waiting for pod" not in outcome.stdout:
                break
            self.delete().succeeded()
            outcome = self._call("ADD")
        self.result = json.loads(outcome.stdout) if outcome.status == 0 else None
        return outcome

    def check(self) -> Outcome:
        """CHECK with the result of ADD."""
        return self._call("CHECK")

    def delete(self) -> Outcome:
        """DEL; may be repeated."""
        return self._call("DEL")

    def end(self) -> None:
        """Detaches the sandbox and deletes its network namespace, as containerd does at the end."""
        self.delete().succeeded()
        self.remove()

    def _call(self, command: str) -> Outcome:
        configuration = {**self.node.configuration(), **self.settings}
        if self.result is not None and command != "ADD":
            configuration["prevResult"] = self.result
        return call(self.node, self.variables(command, _IFNAME), configuration)


def call(node: Node, variables: Mapping[str, str], configuration: Mapping[str, Any]) -> Outcome:
    """Calls the plugin that the configuration names."""
    environment = (f"{name}={value}" for name, value in variables.items())
    process = node.host.start(
        "env",
        *environment,
        str(BINARIES / configuration["type"]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    stdout, stderr = process.communicate(json.dumps(configuration), timeout=_TIMEOUT)
    return Outcome(process.returncode, stdout, stderr)


def run_concurrently(command: Callable[[Sandbox], Outcome], sandboxes: Sequence[Sandbox]) -> None:
    """Runs a command for all sandboxes concurrently; each must succeed."""
    with ThreadPoolExecutor(len(sandboxes)) as calls:
        for outcome in calls.map(command, sandboxes):
            outcome.succeeded()


def _shuffled(items: Mapping[str, str]) -> dict[str, str]:
    return dict(random.sample(list(items.items()), len(items)))
