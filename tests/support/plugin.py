"""Calls of the plugin as runtimes make them: in the node's namespace, with a shuffled environment and stdin."""

import json
import os
import random
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.netns import Netns
from tests.support.plugin_callers import COMMAND, Caller, EntryPoint

__all__ = ["COMMAND", "DEFAULT_NETWORK", "LONG_POLL", "Outcome", "Plugin", "PodSandbox"]

DEFAULT_NETWORK = "contrail-k8s-cni"
LONG_POLL = {"poll-retries": 100}
"""Settings for a call whose data arrives soon; the default of tests is short, for data that never arrives."""


@dataclass(frozen=True)
class Outcome:
    """Exit status and output of a call."""

    status: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """Standard output, parsed as JSON."""
        return json.loads(self.stdout)

    def succeeded(self) -> "Outcome":
        """Returns itself; fails the test if the call failed."""
        assert self.status == 0, (self.stdout, self.stderr)
        return self

    def failed(self, code: int) -> str:
        """Message and details of the CNI error; fails the test unless the call failed with this code."""
        assert self.status != 0, (self.stdout, self.stderr)
        assert self.document["code"] == code, (self.stdout, self.stderr)
        return f"{self.document['msg']} {self.document.get('details', '')}".strip()


@dataclass(frozen=True)
class PodSandbox:
    """A pod as a runtime sees it; a restarted pod has another container ID."""

    netns: str
    name: str = "web-0"
    namespace: str = "demo"
    uid: str = field(default_factory=lambda: str(uuid.uuid4()))
    container: str = field(default_factory=lambda: uuid.uuid4().hex * 2)

    @property
    def vm_name(self) -> str:
        """Name of its virtual machine."""
        return f"k8s__{self.namespace}__{self.name}"

    @property
    def args(self) -> str:
        """CNI_ARGS, in random order as containerd writes them."""
        pairs = [
            f"K8S_POD_NAMESPACE={self.namespace}",
            f"K8S_POD_NAME={self.name}",
            f"K8S_POD_UID={self.uid}",
            f"K8S_POD_INFRA_CONTAINER_ID={self.container}",
            "IgnoreUnknown=1",
        ]
        return ";".join(random.sample(pairs, len(pairs)))


class Plugin:
    """The plugin on one node, with its directories below `folder`; calls reach it through `caller`."""

    def __init__(self, node: Netns, folder: Path, agent_socket: str, caller: Caller | None = None) -> None:
        self.node = node
        self.caller = caller or EntryPoint(node)
        self.folder = folder
        self.node_file = folder / "cni.json"
        self.state_dir = folder / "state"
        self.config_dir = folder / "ports" / "vm"
        self.settings: dict[str, Any] = {
            "agent-socket": agent_socket,
            "state-dir": str(self.state_dir),
            "config-dir": str(self.config_dir),
            "poll-timeout": 0.1,
            "poll-retries": 5,
            "log-level": "debug",
        }

    def config(
        self,
        *,
        name: str = DEFAULT_NETWORK,
        version: str = "1.0.0",
        settings: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """A network configuration with this node's settings, overridden by `settings`."""
        section = {**self.settings, **(settings or {})}
        return {"cniVersion": version, "name": name, "type": "contrail-k8s-cni", "contrail": section, **more}

    def environment(self, command: str, pod: PodSandbox, ifname: str = "eth0", **more: str) -> dict[str, str]:
        """Environment variables of a call, overridden by `more`."""
        variables = {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": pod.container,
            "CNI_NETNS": pod.netns,
            "CNI_IFNAME": ifname,
            "CNI_ARGS": pod.args,
            "CNI_PATH": "/opt/cni/bin",
            **more,
        }
        return dict(random.sample(list(variables.items()), len(variables)))

    def add(self, pod: PodSandbox, ifname: str = "eth0", **config: Any) -> Outcome:
        """ADD with the configuration `config(**config)`."""
        return self.call(self.environment("ADD", pod, ifname), json.dumps(self.config(**config)))

    def delete(self, pod: PodSandbox, ifname: str = "eth0", *, netns: str | None = None, **config: Any) -> Outcome:
        """DEL; `netns` replaces the pod's CNI_NETNS."""
        more = {} if netns is None else {"CNI_NETNS": netns}
        return self.call(self.environment("DEL", pod, ifname, **more), json.dumps(self.config(**config)))

    def check(self, pod: PodSandbox, ifname: str = "eth0", *, previous: Any, **config: Any) -> Outcome:
        """CHECK with the result of ADD."""
        document = self.config(prevResult=previous, **config)
        return self.call(self.environment("CHECK", pod, ifname), json.dumps(document))

    def status(self, **config: Any) -> Outcome:
        """STATUS as libcni calls it."""
        return self._call_node_command("STATUS", self.config(**{"version": "1.1.0", **config}))

    def gc(self, valid: Any, **config: Any) -> Outcome:
        """GC as libcni calls it, with `valid` (pods, or pairs of pod and interface name) in both lists."""
        pairs = [each if isinstance(each, tuple) else (each, "eth0") for each in valid]
        attachments = [{"containerID": pod.container, "ifname": ifname} for pod, ifname in pairs]
        lists = {"cni.dev/valid-attachments": attachments, "cni.dev/attachments": attachments}
        return self._call_node_command("GC", self.config(**{"version": "1.1.0", **lists, **config}))

    def _call_node_command(self, command: str, config: dict[str, Any]) -> Outcome:
        empty = dict.fromkeys(("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS"), "")
        return self.call({"CNI_COMMAND": command, "CNI_PATH": "/opt/cni/bin", **empty}, json.dumps(config))

    def call(self, environment: Mapping[str, str], stdin: str | bytes, *, kill_at: int = 0) -> Outcome:
        """Runs one call to its end; with `kill_at` it kills itself after so many steps (see `fork_server`)."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        ended = self.caller.run(self._with_node_file(environment), data, kill_at=kill_at)
        return Outcome(ended.status, ended.stdout.decode(), ended.stderr.decode())

    def start(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Starts a process for one call, which waits for its standard input."""
        return self.caller.start(self._with_node_file(environment))

    def kill(self, call: subprocess.Popen[bytes]) -> None:
        """Kills the process that executes a started call."""
        self.caller.kill(call)

    def start_with(self, environment: Mapping[str, str], stdin: str) -> subprocess.Popen[bytes]:
        """Starts one call and writes its standard input."""
        process = self.start(environment)
        assert process.stdin is not None
        process.stdin.write(stdin.encode())
        process.stdin.close()
        process.stdin = None
        return process

    def _with_node_file(self, environment: Mapping[str, str]) -> dict[str, str]:
        return {**environment, "CONTRAIL_CNI_CONFIG": str(self.node_file)}

    def files(self) -> list[str]:
        """All files below its directories, relative to their folder."""
        roots = (self.state_dir, self.folder / "ports")
        return sorted(
            os.path.relpath(os.path.join(directory, name), self.folder)
            for root in roots
            for directory, _, names in os.walk(root)
            for name in names
        )

    def record_path(self, pod: PodSandbox, ifname: str = "eth0") -> Path:
        """Path of an attachment's record."""
        return self.state_dir / pod.container / f"{ifname}.json"

    def record(self, pod: PodSandbox, ifname: str = "eth0") -> Any:
        """An attachment's record."""
        return json.loads(self.record_path(pod, ifname).read_text())
