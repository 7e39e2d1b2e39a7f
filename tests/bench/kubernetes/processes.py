"""The processes of a measurement, each with what it takes of the machine."""

import contextlib
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.bench.agent_vm_cfg import processor_seconds
from tests.support.ports import free_port

_TIMEOUT = 30.0
_POLL = 0.02


class ScriptedApi:
    """The scripted API server, from outside."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def written(self) -> dict[str, int]:
        """Number of writes, by `METHOD plural`."""
        counts: dict[str, int] = json.loads(fetch(f"{self.url}/written"))
        return counts

    def play(self, *events: tuple[str, int, int]) -> None:
        """Has things happen to pods: of each element a type, the first pod's number, and the number of pods."""
        fetch(f"{self.url}/play", body=json.dumps(events).encode())


class ManagerProcess:
    """A `contrail-manager` on a cluster, from outside."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.pid = process.pid
        self._process = process
        self._url = f"http://127.0.0.1:{port}"

    @property
    def is_ready(self) -> bool:
        """Whether it has tried every pod of its first list, or is no manager yet."""
        assert self._process.poll() is None, "the manager ended"
        try:
            return fetch(f"{self._url}/readyz") != b"" and "contrail_manager_leads 1.0" in self._metrics()
        except (urllib.error.URLError, ConnectionError):
            return False

    @property
    def processor_seconds(self) -> float:
        """Processor time that it took."""
        return processor_seconds(self.pid)

    @property
    def peak_mib(self) -> int:
        """The most memory that was resident."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) // 1024

    def _metrics(self) -> str:
        return fetch(f"{self._url}/metrics").decode()


@contextlib.contextmanager
def scripted_api(*, pods: int) -> Iterator[ScriptedApi]:
    """A scripted API server with so many pods."""
    command = [sys.executable, "-m", "tests.bench.kubernetes.scripted_apiserver", str(pods)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield ScriptedApi(int(process.stdout.readline()))
        process.stdin.close()


@contextlib.contextmanager
def manager_process(folder: Path, *, kubeconfig: Path, pod_network: str = "10.32.0.0/12") -> Iterator[ManagerProcess]:
    """A manager that follows a cluster; its log is `manager.log` in the folder."""
    port = free_port()
    configuration = {
        "source": {"kind": "kubernetes", "kubeconfig": str(kubeconfig)},
        "store": {"kind": "kubernetes"},
        "pod-network": {"subnets": [pod_network]},
        "listen": f"127.0.0.1:{port}",
    }
    file = folder / "manager.yaml"
    file.write_text(json.dumps(configuration))
    command = [str(Path(sys.executable).with_name("contrail-manager")), "--config", str(file), "--log-level", "warning"]
    with (folder / "manager.log").open("ab") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            yield ManagerProcess(process, port)
        finally:
            process.terminate()


def plain_kubeconfig(folder: Path, server: str) -> Path:
    """Configuration of a client that nobody asks who it is."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "scripted", "cluster": {"server": server}}],
        "contexts": [{"name": "scripted", "context": {"cluster": "scripted", "user": ""}}],
        "current-context": "scripted",
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(document))
    return file


def until(condition: Callable[[], bool], *, seconds: float) -> float:
    """Returns the seconds until the condition holds; ends the benchmark if that takes too long."""
    began = time.perf_counter()
    while not condition():
        if time.perf_counter() - began > seconds:
            sys.exit(f"not done within {seconds:g} s")
        time.sleep(_POLL)  # noqa: TID251 - other processes are watched, which tell no event
    return time.perf_counter() - began


def fetch(url: str, *, body: bytes | None = None) -> bytes:
    """The body of an answer."""
    with urllib.request.urlopen(urllib.request.Request(url, data=body), timeout=_TIMEOUT) as answer:
        content: bytes = answer.read()
    return content
