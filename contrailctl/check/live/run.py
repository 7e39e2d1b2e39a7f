"""Run of the live check: what its objects have in common, and how those of a run that was killed are known.

Objects have the label of their run, and annotations with the process that made them and the time when they are of no
use any more. A run whose process has ended on this machine, or whose time is over, has left its objects behind; those
of other runs may be in use by another operator.
"""

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

RUN_LABEL: Final = "opencontrail.org/connectivity-check"
PROCESS_KEY: Final = "opencontrail.org/connectivity-check-process"
EXPIRES_KEY: Final = "opencontrail.org/connectivity-check-expires"

PREFIX: Final = "contrail-check-"
"""Of the names of all objects: nothing else is removed, whatever its labels are."""

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_START_FIELD = 19  # of /proc/PID/stat, after the name of the program: starttime


class Run(NamedTuple):
    """One run: its identifier, its process and the end of its pods."""

    identifier: str
    process: str
    expires: datetime

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of all objects of the run."""
        return {RUN_LABEL: self.identifier, "app.kubernetes.io/name": "contrail-connectivity-check"}

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations of all objects of the run."""
        return {PROCESS_KEY: self.process, EXPIRES_KEY: self.expires.isoformat(timespec="seconds")}

    @property
    def name(self) -> str:
        """Name of the temporary namespace; those of pods begin with it."""
        return f"{PREFIX}{self.identifier}"


def new_run(seconds: float) -> Run:
    """Returns a run of this process that lasts so long at most."""
    return Run(secrets.token_hex(4), _process(os.getpid()), datetime.now(UTC) + timedelta(seconds=seconds))


def is_left_behind(name: str, annotations: Mapping[str, str], *, now: datetime) -> bool:
    """Returns whether an object with the label of a run is of no use to anybody."""
    if not name.startswith(PREFIX):
        return False
    process = annotations.get(PROCESS_KEY, "")
    machine, _, rest = process.rpartition("/")
    pid = rest.partition(":")[0]
    if machine == _machine() and pid.isdecimal() and _process(int(pid)) != process:
        return True
    with suppress(ValueError, TypeError):  # not a time, or one without a zone: nobody knows when
        return datetime.fromisoformat(annotations.get(EXPIRES_KEY, "")) < now
    return False


def _process(pid: int) -> str:
    """Returns a name that no other process of any machine has; without a start if there is no such process."""
    return f"{_machine()}/{pid}:{_start(pid)}"


def _machine() -> str:
    """Returns what process IDs are relative to: the boot of the machine, and the PID namespace."""
    with open(_BOOT_ID, encoding="ascii") as file:
        return f"{file.read().strip()}/{os.stat('/proc/self/ns/pid').st_ino}"


def _start(pid: int) -> str:
    """Returns when a process has started, in the kernel's clock ticks, empty if it does not exist."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[_START_FIELD]
    except (FileNotFoundError, ProcessLookupError):
        return ""
