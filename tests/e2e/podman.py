"""podman with its CNI back end and runc, on a busybox root file system, without images and registry."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.host import Host
from tests.e2e.interfaces import Ip
from tests.e2e.node import NETWORK

_CONFIGURATION = f"""
[network]
network_backend = "cni"
default_network = "{NETWORK}"

[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "runc"
"""
_STORAGE = """
[storage]
driver = "vfs"
graphroot = "/var/lib/containers/storage"
runroot = "/run/containers/storage"
"""

_LIMITS = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024")
"""Below the host's limits, so that runc needs no right to raise them."""


class Podman:
    """Runs podman on a host, with private folders."""

    def __init__(self, host: Host, root_file_system: Path) -> None:
        self._host = host
        self._root_file_system = root_file_system
        host.path("/etc/containers/containers.conf").write_text(_CONFIGURATION)
        host.path("/etc/containers/storage.conf").write_text(_STORAGE)
        self("info")  # creates its files and folders

    def __call__(self, *arguments: str) -> str:
        """Runs `podman ARGUMENTS`, which must succeed; returns its output."""
        return self._host.run("podman", *arguments)

    def start(self, name: str, *options: str) -> None:
        """Starts a container that sleeps."""
        self(*self._run(name, *options), "sleep", "1000")

    def rejected(self, name: str, *options: str) -> str:
        """Starts a container that must fail, removes it and returns podman's standard error."""
        ended = self._host.call("podman", *self._run(name, *options), "sleep", "1000")
        assert ended.returncode != 0, (name, options)
        self.remove(name)
        return ended.stderr

    def run(self, name: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in a container that is removed afterwards."""
        return self._host.call("podman", *self._run(name, "--rm"), *command)

    def remove(self, name: str) -> None:
        """Stops and removes a container. Idempotent."""
        self("rm", "--force", "--ignore", "--time=0", name)

    def ip(self, name: str) -> Ip:
        """Runs `ip` in a container."""
        return lambda *arguments: self("exec", name, "ip", *arguments)

    def networks(self, name: str) -> dict[str, dict[str, Any]]:
        """The container's networks as podman reports them, by name."""
        networks: dict[str, dict[str, Any]] = json.loads(
            self("inspect", name, "--format={{json .NetworkSettings.Networks}}")
        )
        return networks

    def _run(self, name: str, *options: str) -> tuple[str, ...]:
        detached = () if "--rm" in options else ("--detach",)
        cgroups = (f"--cgroup-parent={self._host.cgroup}", "--cgroups=no-conmon")
        own = (f"--name={name}", *cgroups, *_LIMITS)
        return ("run", *detached, *own, *options, "--rootfs", str(self._root_file_system))
