"""Everything on a host that an attachment could leave behind, to compare before and after."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.host import Host
from tests.e2e.node import Node

_STATE = ("/run/contrail", "/run/netns", "/var/lib/cni")
_OF_A_POD = ("10.32.", "10.10.0.", "fd00:10:", "fd00:20:")

_OF_THE_REAL_HOST = ("/etc/cni", "/etc/contrail", "/opt/cni", "/run/contrail", "/var/lib/cni", "/var/lib/contrail")
_RUNTIMES_OF_THE_REAL_HOST = (
    "/run/containers",
    "/run/containerd",
    "/run/libpod",
    "/var/lib/containerd",
    "/var/lib/containers",
)


def everything(node: Node) -> Counter[str]:
    """Links, processes, mounts, files, packet filter rules of pods, and control groups."""
    host = node.host
    mounts = host.path("/proc/1/mountinfo").read_text().splitlines()
    kinds = {
        "link": host.net.links(),
        "process": _processes(host),
        "mount": (line.split()[4] for line in mounts),
        "file": _files(*map(host.path, _STATE), node.data / "ports"),
        "rule": (line for line in _rules(host) if any(address in line for address in _OF_A_POD)),
        "control group": map(str, Path("/sys/fs/cgroup").glob(f"**{host.cgroup}/*/")),
    }
    return Counter(f"{kind} {each}" for kind, found in kinds.items() for each in found)


def of_the_real_host() -> list[str]:
    """What tests must not change on the real host: files at fixed paths, and which folders of runtimes exist."""
    runtimes = (path for path in _RUNTIMES_OF_THE_REAL_HOST if os.path.exists(path))
    return sorted([*_files(*map(Path, _OF_THE_REAL_HOST)), *runtimes])


def _processes(host: Host) -> Iterator[str]:
    for folder in host.path("/proc").glob("[0-9]*"):
        try:
            yield (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended since glob listed it


def _files(*folders: Path) -> Iterator[str]:
    for top in folders:
        for folder, _, names in os.walk(top):
            yield from (os.path.join(folder, name) for name in names)


def _rules(host: Host) -> list[str]:
    return [line for command in ("iptables-save", "ip6tables-save") for line in host.run(command).splitlines()]
