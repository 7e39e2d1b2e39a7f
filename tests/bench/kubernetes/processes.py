"""Processes of a benchmark: a scripted API server and a manager."""

import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.cluster_processes import ManagerProcess
from tests.support.served_process import ServedProcess

_TIMEOUT = 30.0
_POLL = 0.02
_DEADLINE = 900.0


class ScriptedApi:
    """Client of the scripted API server."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def written(self, what: str) -> int:
        """Number of such writes, as `METHOD plural`."""
        return self._counts().get(what, 0)

    def writes(self) -> int:
        """Number of all writes except events and the lease."""
        return sum(count for what, count in self._counts().items() if what.split()[1] not in ("events", "leases"))

    def play(self, events: list[tuple[str, int]]) -> None:
        """Plays events of pods: type and pod number of each."""
        _fetch(f"{self.url}/play", body=json.dumps(events).encode())

    def _counts(self) -> dict[str, int]:
        counts: dict[str, int] = json.loads(_fetch(f"{self.url}/written"))
        return counts


@contextlib.contextmanager
def scripted_api(*, pods: int) -> Iterator[ScriptedApi]:
    """Yields a scripted API server with so many pods."""
    command = [sys.executable, "-m", "tests.bench.kubernetes.scripted_apiserver", str(pods)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield ScriptedApi(int(process.stdout.readline()))
        finally:
            process.stdin.close()


@contextlib.contextmanager
def scripted_manager(work: Path, api: ScriptedApi) -> Iterator[ManagerProcess]:
    """Starts a manager without waiting and stops it when the context is left."""
    manager = ManagerProcess(work, _kubeconfig(work, api.url))
    manager.launch()
    try:
        yield manager
    finally:
        manager.stop()


def knows_all(manager: ManagerProcess) -> bool:
    """Whether it leads and has processed every pod of its first list."""
    return manager.leads and manager.get("/readyz") is not None


def pid_of(served: ServedProcess) -> int:
    """Process ID."""
    assert served.process is not None
    return served.process.pid


def peak_mib(pid: int) -> int:
    """Peak resident memory of a process in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) // 1024


def reset_peak_mib(pid: int) -> int:
    """Resets the peak to the resident memory of now, and returns that in MiB."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    return peak_mib(pid)


def until(condition: Callable[[], bool], *, manager: ManagerProcess) -> None:
    """Polls until the condition holds; exits the benchmark if the manager ends or after a deadline."""
    assert manager.process is not None
    give_up = time.monotonic() + _DEADLINE
    while not condition():
        if manager.process.poll() is not None or time.monotonic() > give_up:
            sys.exit(f"manager: ended, or timed out after {_DEADLINE:g} s:\n{manager.log.read_text()[-3000:]}")
        time.sleep(_POLL)  # noqa: TID251 - other processes are polled


def _kubeconfig(work: Path, server: str) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "scripted", "cluster": {"server": server}}],
        "contexts": [{"name": "scripted", "context": {"cluster": "scripted", "user": ""}}],
        "current-context": "scripted",
    }
    file = work / "kubeconfig"
    file.write_text(json.dumps(document))
    return file


def _fetch(url: str, *, body: bytes | None = None) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, data=body), timeout=_TIMEOUT) as answer:
        content: bytes = answer.read()
    return content
