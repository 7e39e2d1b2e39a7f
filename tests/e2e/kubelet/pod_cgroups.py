"""Control groups of pods on a host."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.host import Host

_TOP = Path("/sys/fs/cgroup")


def pod_cgroups(host: Host) -> Iterator[Path]:
    """The folders of all pods, in all version 1 hierarchies or in that of version 2."""
    for top in (*_TOP.glob(f"*{host.cgroup}"), *_TOP.glob(host.cgroup[1:])):
        for folder, _, _ in os.walk(top):
            if os.path.basename(folder).startswith("pod"):
                yield Path(folder)


def process_of(host: Host, pod: str) -> int:
    """ID of a process of the pod with this uid, as the test sees it."""
    folders = (folder for folder in pod_cgroups(host) if folder.name == f"pod{pod}")
    files = (file for folder in folders for file in folder.glob("**/cgroup.procs"))
    return next(int(process) for file in files for process in file.read_text().split())


def commands(folder: Path) -> list[str]:
    """Command lines of the processes in a control group and those below it."""
    found = []
    for file in folder.glob("**/cgroup.procs"):
        with contextlib.suppress(FileNotFoundError):
            for process in file.read_text().split():
                with contextlib.suppress(FileNotFoundError):
                    found.append(Path(f"/proc/{process}/cmdline").read_bytes())
    return [command.replace(b"\0", b" ").decode(errors="replace") for command in found]
