"""containerd with runc, driven by `ctr run --cni` on a busybox root file system, without images and registry.

`ctr` uses the first network of /etc/cni/net.d with empty CNI_ARGS, container ID `default-NAME` and the namespace of the
container's process. It calls DEL after the container has ended, without a namespace.
"""

import subprocess
from pathlib import Path

from tests.e2e.host import Host
from tests.e2e.node import Node

_WITHOUT_KUBERNETES = 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n'


class Containerd:
    """A containerd on the node's host, with private folders; it ends with the host."""

    def __init__(self, node: Node, root_file_system: Path) -> None:
        self._host = node.host
        self._root_file_system = root_file_system
        self._host.path("/etc/containerd/config.toml").write_text(_WITHOUT_KUBERNETES)
        with self._host.path("/run/containerd.log").open("w") as log:
            self._process = self._host.start("containerd", stderr=log)
        node.wait_until(lambda: self._host.call("ctr", "version").returncode == 0, what="containerd ready")

    def forget(self) -> None:
        """Stops waiting for it; the process itself ends with the host."""
        self._process.kill()  # `nsenter`; containerd itself ends with the host
        self._process.wait(10)

    def run(self, name: str, script: str) -> subprocess.CompletedProcess[str]:
        """Runs a shell script in a container that is removed afterwards."""
        return self._host.call(*self._command(name, script))

    def start(self, name: str) -> "Container":
        """Starts a container that sleeps."""
        command = self._command(name, "echo started; exec sleep 1000")
        process = self._host.start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return Container(name, self._host, process)

    def rejected(self, name: str) -> str:
        """Runs a container that must fail to start, removes its remains and returns the standard error of `ctr`."""
        ended = self.run(name, "echo started")
        assert ended.returncode != 0
        assert ended.stdout == ""
        self._host.run("ctr", "task", "delete", "--force", name)
        self._host.run("ctr", "container", "delete", name)
        return ended.stderr

    def containers(self) -> list[str]:
        """Names of all containers."""
        return self._host.run("ctr", "containers", "list", "--quiet").split()

    def _command(self, name: str, script: str) -> tuple[str, ...]:
        cgroup = f"--cgroup={self._host.cgroup}/{name}"
        container = ("--rootfs", str(self._root_file_system), name, "/bin/sh", "-c", script)
        return ("ctr", "run", "--rm", "--cni", cgroup, *container)


class Container:
    """A container and its `ctr` process."""

    def __init__(self, name: str, host: Host, process: subprocess.Popen[str]) -> None:
        self.name = name
        self._host = host
        self._process = process

    def wait_until_started(self) -> None:
        """Waits until its process runs, which is after ADD."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "started\n", self._process.communicate(timeout=10)

    def ip(self, *arguments: str) -> str:
        """Runs `ip` in the container."""
        return self._host.run("ctr", "task", "exec", "--exec-id=ip", self.name, "/bin/ip", *arguments)

    def end(self) -> None:
        """Kills the container and waits until `ctr` has detached and removed it."""
        self._host.run("ctr", "task", "kill", "--signal=KILL", self.name)
        _, errors = self._process.communicate(timeout=30)
        assert "failed" not in errors, errors
