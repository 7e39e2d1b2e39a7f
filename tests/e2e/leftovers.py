"""Everything that an attachment could leave behind on a host, or a run of the tests on the machine."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.host import Host
from tests.e2e.node import Node
from tests.support.netns import Netns
from tests.support.plugin_forks import server_processes
from tests.support.real_apiserver.shared import shared_apiserver

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
    """What `of_host` returns, and packet filter rules of pods."""
    rules = (line for line in _rules(node.host) if any(address in line for address in _OF_A_POD))
    return of_host(node.host, node.data / "ports") + Counter(f"rule {line}" for line in rules)


def of_host(host: Host, ports: Path) -> Counter[str]:
    """Links, processes, mounts, files and control groups; `ports` is the folder of the agent's."""
    mounts = host.path("/proc/1/mountinfo").read_text().splitlines()
    kinds = {
        "link": host.net.links(),
        "process": _processes(host),
        "mount": (line.split()[4] for line in mounts),
        "file": _files(*map(host.path, _STATE), ports),
        "control group": _control_groups(host.cgroup),
    }
    return Counter(f"{kind} {each}" for kind, found in kinds.items() for each in found)


def of_this_run(mark: str) -> list[str]:
    """Network namespaces that tests made, and processes whose environment has the mark.

    Without this process, and the servers that end with it.
    """
    namespaces = (name for name in sorted(Netns.made) if os.path.exists(f"/run/netns/{name}"))
    return [*(f"namespace {name}" for name in namespaces), *(f"process {each}" for each in _marked(mark))]


def _marked(mark: str) -> Iterator[str]:
    lasting = {os.getpid(), *server_processes()}
    if shared_apiserver.cache_info().currsize:
        lasting |= {shared_apiserver().pid, shared_apiserver().etcd.pid}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int(folder.name) not in lasting and mark.encode() in (folder / "environ").read_bytes():
                yield (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # ended since glob listed it, or of a container of somebody else


def of_the_real_host() -> list[str]:
    """Files that tests must not change on the real host: at fixed paths, and folders of runtimes."""
    runtimes = (path for path in _RUNTIMES_OF_THE_REAL_HOST if os.path.exists(path))
    return sorted([*_files(*map(Path, _OF_THE_REAL_HOST)), *runtimes])


def _control_groups(parent: str) -> Iterator[str]:
    """Those of a hierarchy of its own for each controller, and of the one for all. Others come and go elsewhere."""
    for hierarchy in ("", "/*"):
        yield from map(str, Path("/sys/fs/cgroup").glob(f"{hierarchy}{parent}/*/".lstrip("/")))


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
