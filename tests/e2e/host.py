"""Temporary host: network, host name, mount and process namespaces for a complete node with its container runtime.

Other software uses fixed paths (/etc/cni, /opt/cni, /var/lib/cni, /run, ...). On a temporary host these folders are
private and empty at first, so everything is installed as on a real node, and nothing of the real host is used or
changed. Killing the first process kills all others, and the kernel removes links and mounts with the namespaces.
"""

import contextlib
import os
import select
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.netns import Netns

_FIRST_PROCESS = Path(__file__).with_name("host.sh")
_DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")  # no container outlives a killed test run
_NAMESPACES = ("--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private")
_END_TIMEOUT = 10.0
_CGROUPS = Path("/sys/fs/cgroup")


class Host:
    """A running temporary host. `net` is its network namespace, which has the host ends of interfaces.

    A command with the prefix `enter` runs on the host.
    """

    def __init__(self, net: Netns, first_process: int) -> None:
        self.net = net
        self.root = Path(f"/proc/{first_process}/root")
        self.enter = ("nsenter", f"--target={first_process}", "--uts", "--mount", "--pid", "--net", "--")

    @property
    def cgroup(self) -> str:
        """Path of the control group for its containers; control groups are not private to the host."""
        return f"/{self.net.name}"

    def path(self, inside: str) -> Path:
        """Path of a file of the host, as seen by the test."""
        return self.root / inside.lstrip("/")

    def make_cgroup(self) -> None:
        """Creates the control group, which some programs expect, in all hierarchies; it is removed with the host."""
        version_1 = [each.parent for each in _CGROUPS.glob("*/cgroup.procs")]
        for hierarchy in version_1 or [_CGROUPS]:
            (hierarchy / self.net.name).mkdir()

    def start(self, *command: str, **options: Any) -> subprocess.Popen[str]:
        """Starts a command on the host."""
        return subprocess.Popen([*self.enter, *command], text=True, **options)

    def call(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a command with `variables` added to the environment; returns the completed process."""
        environment = (f"{name}={value}" for name, value in variables.items())
        return subprocess.run(
            [*self.enter, "env", *environment, *command], capture_output=True, text=True, check=False, timeout=90
        )

    def run(self, *command: str, **variables: str) -> str:
        """Runs a command that must succeed; returns its output."""
        ended = self.call(*command, **variables)
        assert ended.returncode == 0, (command, ended.returncode, ended.stdout, ended.stderr)
        return ended.stdout


@contextlib.contextmanager
def temporary_host() -> Iterator[Host]:
    """Yields a new host and removes it with everything on it."""
    net = Netns("host")
    try:
        with host_of(net) as host:
            yield host
    finally:
        net.delete()
        _remove_cgroups(net.name)


@contextlib.contextmanager
def host_of(net: Netns) -> Iterator[Host]:
    """Yields a host in an existing network namespace, and ends all of its processes."""
    with _first_process(net) as pid:
        yield Host(net, pid)


@contextlib.contextmanager
def _first_process(net: Netns) -> Iterator[int]:
    """Starts it and yields its process ID; kills it at the end, and with it all processes of the host."""
    folders = os.path.dirname(tempfile.gettempdir())  # of this run, and of those at the same time
    with net.inside():
        process = subprocess.Popen(
            [*_DIES_WITH_PARENT, "unshare", *_NAMESPACES, "sh", str(_FIRST_PROCESS), folders],
            stdout=subprocess.PIPE,
            text=True,
        )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", "the host did not start; see standard error"
            (pid,) = children(process.pid)
            yield pid
        finally:
            _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kills `unshare` and with it the first process, whose exit the kernel reports after all other processes ended."""
    with contextlib.ExitStack() as opened:
        first = [opened.enter_context(open(os.pidfd_open(pid), "rb")) for pid in children(process.pid)]
        process.kill()
        for ended in first:
            assert select.select([ended], [], [], _END_TIMEOUT)[0], "timed out: the host does not end"


def children(pid: int) -> list[int]:
    """Process IDs of the children of a process's first thread."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _remove_cgroups(name: str) -> None:
    """Removes the control groups, in all version 1 hierarchies or in that of version 2."""
    for top in (*_CGROUPS.glob(f"*/{name}"), *_CGROUPS.glob(name)):
        for folder, _, _ in os.walk(top, topdown=False):
            os.rmdir(folder)
