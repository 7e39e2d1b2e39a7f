"""Exec plugins: Python code of commands that print credentials."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"

WriteCommand = Callable[..., str]
"""Writes a command that runs the given Python code, and returns its path."""


def counting(runs: Path, *, expires: datetime | None = None) -> str:
    """Prints the token `t1` in the first run, `t2` in the second, and so on."""
    expiry = f", 'expirationTimestamp': '{expires:%Y-%m-%dT%H:%M:%SZ}'" if expires else ""
    return f"""
import json
with open({str(runs)!r}, "a+") as file:
    file.write("run\\n")
    file.seek(0)
    count = len(file.readlines())
print(json.dumps({{"apiVersion": {V1!r}, "kind": "ExecCredential", "status": {{"token": f"t{{count}}"{expiry}}}}}))
"""


def giving(version: str = V1, **status: Any) -> str:
    credential = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    return f"print({json.dumps(credential)!r})"


def user(command: str, **plugin: Any) -> dict[str, Any]:
    return {"exec": {"apiVersion": V1, "command": command, "interactiveMode": "Never", **plugin}}


def count_runs(runs: Path) -> int:
    return runs.read_text().count("run")


def hanging(pids: Path) -> str:
    """Writes its pid and that of a child process, and hangs."""
    return f"""
import os, subprocess, time
child = subprocess.Popen(["sleep", "60"])
with open({str(pids)!r}, "w") as file:
    file.write(f"{{os.getpid()}} {{child.pid}}")
time.sleep(60)
"""


def both_run(pids: Path) -> bool:
    """Whether both pids were written."""
    return len(pids.read_text().split()) == 2


def all_ended(pids: Path) -> bool:
    """Whether neither process runs any more."""
    return both_run(pids) and not any(_runs(pid) for pid in pids.read_text().split())


def _runs(pid: str) -> bool:
    """Whether a process runs; one that is not reaped stays as a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
