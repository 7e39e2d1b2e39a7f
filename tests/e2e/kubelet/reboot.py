"""Reboot of a node: all processes end at once, and what is only in memory is lost."""

import os
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.host import Host
from tests.e2e.kubelet.node import Node
from tests.e2e.polling import wait_until

_FIRST_PROCESS = "1"
_KEEPS_THE_HOST = b"sleep\0infinity\0"  # of the first process, see host.sh
_LINKS_OF_THE_MACHINE = ("lo", "eth0")
_RUNTIME_FILES = "/run/"
_OF_THE_MACHINE = ("/run/netns", "/run/.host")
_PODS = "/var/lib/kubelet/"


def reboot(node: Node) -> None:
    """Kills everything on the node, empties its memory, and starts its programs."""
    node.kill()
    _kill_all(node.host)
    _unmount(node.host)
    _remove_runtime_files(node.host)
    _reset_network(node.host)
    node.start(())


def _kill_all(host: Host) -> None:
    def left() -> list[str]:
        return [pid for pid in _processes(host) if not _is_ended(host.path(f"/proc/{pid}"))]

    host.call("kill", "-KILL", *left())
    wait_until(lambda: not left(), what="without processes")


def _processes(host: Host) -> list[str]:
    """Those of programs and containers, as the host counts them."""
    pids = [name for name in os.listdir(host.path("/proc")) if name.isdigit() and name != _FIRST_PROCESS]
    return [pid for pid in pids if _command(host.path(f"/proc/{pid}")) != _KEEPS_THE_HOST]


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _is_ended(process: Path) -> bool:
    """Whether it is gone, or nobody has asked for its exit status yet."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def _unmount(host: Host) -> None:
    """Unmounts what pods and programs had mounted, the innermost first."""
    mounts = [line.split()[4] for line in host.path("/proc/1/mountinfo").read_text().splitlines()]
    for mount in reversed(mounts):
        if mount.startswith((_RUNTIME_FILES, _PODS)) and mount not in _OF_THE_MACHINE:
            host.call("umount", "--lazy", mount)  # those of the machine that the host's /run covers cannot be


def _remove_runtime_files(host: Host) -> None:
    """Removes the files below /run, as a reboot does, but not those that stand for kernel settings."""
    for path in _runtime_files(host):
        host.run("rm", "--recursive", path)


def _runtime_files(host: Host) -> Iterator[str]:
    for name in os.listdir(host.path("/run")):
        path = f"{_RUNTIME_FILES}{name}"
        if path not in _OF_THE_MACHINE and not host.path(path).is_file():
            yield path
    yield from (f"/run/netns/{name}" for name in os.listdir(host.path("/run/netns")))


def _reset_network(host: Host) -> None:
    for link in host.net.links():
        if link not in _LINKS_OF_THE_MACHINE:
            host.call("ip", "link", "delete", link)  # the other end of a pair may be gone with this one
    host.run("nft", "flush", "ruleset")
