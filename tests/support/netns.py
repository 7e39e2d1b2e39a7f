"""Temporary network namespaces for tests: a node's and its pods'.

Tests create links only between two of these, never in the host's namespace, so that nothing can be left there and
tests do not see each other's links.
"""

import contextlib
import ctypes
import os
import subprocess
import uuid
from collections.abc import Iterator
from typing import Any, ClassVar

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _setns(fd: int) -> None:
    if _libc.setns(fd, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def inside(path: str) -> Iterator[None]:
    """Moves the current thread into a network namespace; the thread must not await anything inside."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    target = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _setns(target)
        try:
            yield
        finally:
            _setns(own)
    finally:
        os.close(own)
        os.close(target)


class Netns:
    """A named network namespace under /run/netns, with its loopback up. `made` are the names of all in this process."""

    made: ClassVar[set[str]] = set()

    def __init__(self, kind: str) -> None:
        self.name = f"ct-{kind}-{uuid.uuid4().hex[:12]}"
        self.made.add(self.name)
        self.path = f"/run/netns/{self.name}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        self.ip("link", "set", "lo", "up")

    def ip(self, *args: str) -> str:
        """Runs `ip -n NAME ARGS` and returns its output."""
        return subprocess.run(
            ["ip", "-n", self.name, *args], check=True, capture_output=True, text=True, timeout=10
        ).stdout

    def run(self, *command: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
        """Runs a command in the network namespace and the test's mount namespace; returns the completed process."""
        kwargs.setdefault("timeout", 60)
        return subprocess.run(
            ["nsenter", f"--net={self.path}", "--", *command], capture_output=True, text=True, check=False, **kwargs
        )

    def inside(self) -> contextlib.AbstractContextManager[None]:
        """Moves the current thread into the namespace; the thread must not await anything inside."""
        return inside(self.path)

    def links(self) -> list[str]:
        """Names of its links by index, without the loopback."""
        lines = self.ip("-o", "link").splitlines()
        names = [line.split(": ")[1].split("@")[0] for line in lines]
        return [name for name in names if name != "lo"]

    def delete(self) -> None:
        """Deletes the namespace. Idempotent."""
        if os.path.exists(self.path):
            subprocess.run(["ip", "netns", "del", self.name], check=True)
