"""Everything in a machine that an attachment could leave behind, to compare before and after."""

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.machine import Machine
from tests.e2e.node import Node

_STATE = ("/run/contrail", "/run/netns", "/var/lib/cni")
_OF_A_POD = ("10.32.", "10.10.0.", "fd00:10:", "fd00:20:")

_REAL_MACHINE = ("/etc/cni", "/etc/contrail", "/opt/cni", "/run/contrail", "/run/containerd", "/run/libpod")
_REAL_STORAGE = ("/var/lib/cni", "/var/lib/containerd", "/var/lib/containers", "/var/lib/contrail")


def everything(node: Node) -> Counter[str]:
    """Links, processes, mounts, files, packet filter rules of pods, control groups."""
    machine = node.machine
    mounts = machine.path("/proc/1/mountinfo").read_text().splitlines()
    kinds = {
        "link": machine.net.links(),
        "process": _processes(machine),
        "mount": (line.split()[4] for line in mounts),
        "file": _files(*map(machine.path, _STATE), node.data / "ports"),
        "rule": (line for line in _rules(machine) if any(address in line for address in _OF_A_POD)),
        "control group": map(str, Path("/sys/fs/cgroup").glob(f"**{machine.cgroup}/*/")),
    }
    return Counter(f"{kind} {each}" for kind, found in kinds.items() for each in found)


def of_the_real_machine() -> list[str]:
    """What must be the same after all tests: the folders that peers and our parts know by a fixed path."""
    return sorted(_files(*map(Path, (*_REAL_MACHINE, *_REAL_STORAGE))))


def _processes(machine: Machine) -> Iterator[str]:
    for folder in machine.path("/proc").glob("[0-9]*"):
        try:
            yield (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended meanwhile


def _files(*folders: Path) -> Iterator[str]:
    for top in folders:
        for folder, _, names in os.walk(top):
            yield from (os.path.join(folder, name) for name in names)


def _rules(machine: Machine) -> list[str]:
    commands = ("iptables-save", "ip6tables-save")
    saved = (
        subprocess.run(["nsenter", f"--net={machine.net.path}", each], capture_output=True, text=True, check=True)
        for each in commands
    )
    return [line for each in saved for line in each.stdout.splitlines()]
