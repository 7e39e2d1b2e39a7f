"""A throw-away machine: network, mount and process namespaces in which a whole node with its container runtime runs.

Peers know folders by fixed paths (/etc/cni, /opt/cni, /var/lib/cni, /run, ...): in here these are its own, empty at the
start, so everything can be installed as on a real node and nothing of the real machine's is used or changed. What is
left running is killed with the first process, and the kernel takes links and mounts away with the namespaces.
"""

import contextlib
import os
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.netns import Netns

_FIRST_PROCESS = Path(__file__).with_name("host.sh")
_WITH_US = ("setpriv", "--pdeathsig", "KILL")  # no container outlives a killed test run
_NAMESPACES = ("--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private")
_END_TIMEOUT = 10.0
_CGROUPS = Path("/sys/fs/cgroup")


class Host:
    """A running one. `net` is its network namespace: host ends of interfaces are there."""

    def __init__(self, net: Netns, first_process: int) -> None:
        self.net = net
        self.root = Path(f"/proc/{first_process}/root")
        self._enter = ("nsenter", f"--target={first_process}", "--mount", "--pid", "--net", "--")

    @property
    def cgroup(self) -> str:
        """Path of the control group for its containers: control groups are the one thing that is not private."""
        return f"/{self.net.name}"

    def path(self, inside: str) -> Path:
        """Where a file of the machine is for the test."""
        return self.root / inside.lstrip("/")

    def start(self, *command: str, **options: Any) -> subprocess.Popen[str]:
        """Starts a command in the machine."""
        return subprocess.Popen([*self._enter, *command], text=True, **options)

    def call(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end, `variables` added to the environment, and returns how it ended."""
        environment = (f"{name}={value}" for name, value in variables.items())
        return subprocess.run(
            [*self._enter, "env", *environment, *command], capture_output=True, text=True, check=False, timeout=90
        )

    def run(self, *command: str, **variables: str) -> str:
        """Runs a command that succeeds, and returns what it printed."""
        ended = self.call(*command, **variables)
        assert ended.returncode == 0, (command, ended.returncode, ended.stdout, ended.stderr)
        return ended.stdout


@contextlib.contextmanager
def temporary_host() -> Iterator[Host]:
    """Starts a machine, and removes it with all that is in it."""
    net = Netns("machine")
    try:
        with _first_process(net) as pid:
            yield Host(net, pid)
    finally:
        net.delete()
        _remove_cgroups(net.name)


@contextlib.contextmanager
def _first_process(net: Netns) -> Iterator[int]:
    """Starts it and yields its number; at the end it is killed, and with it every other process of the machine."""
    with net.inside():
        process = subprocess.Popen(
            [*_WITH_US, "unshare", *_NAMESPACES, "sh", str(_FIRST_PROCESS)], stdout=subprocess.PIPE, text=True
        )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", "the machine did not start: standard error tells why"
            (pid,) = _children(process.pid)
            yield pid
        finally:
            _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kills `unshare`, whose child then dies; the kernel tells of that death when nothing else is left in there."""
    with contextlib.ExitStack() as opened:
        first = [opened.enter_context(open(os.pidfd_open(pid), "rb")) for pid in _children(process.pid)]
        process.kill()
        for ended in first:
            assert select.select([ended], [], [], _END_TIMEOUT)[0], "the machine does not end"


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _remove_cgroups(name: str) -> None:
    """In each hierarchy of version 1, or in the one of version 2."""
    for top in (*_CGROUPS.glob(f"*/{name}"), *_CGROUPS.glob(name)):
        for folder, _, _ in os.walk(top, topdown=False):
            os.rmdir(folder)
