"""Manager and agent processes, as operators run them: they communicate only through an API server.

Each takes the kubeconfig of the account that it uses; `ApiServer.kubeconfig()` is the administrator's.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.api_pages import every_item
from tests.support.free_port import free_port
from tests.support.served_process import ServedProcess

BINARIES = Path(sys.executable).parent
_ANY = "127.0.0.1"


class ManagerProcess(ServedProcess):
    """`contrail-manager` on a cluster. `settings` are further configuration keys; its files are below `work`."""

    def __init__(self, work: Path, kubeconfig: Path, *, lease_namespace: str = "kube-system", **settings: Any) -> None:
        work.mkdir(parents=True, exist_ok=True)
        listen = f"{_ANY}:{free_port()}"
        configuration = {
            "source": {"kind": "kubernetes", "kubeconfig": str(kubeconfig), "lease-namespace": lease_namespace},
            "store": {"kind": "kubernetes"},
            "listen": listen,
            **{key.replace("_", "-"): value for key, value in settings.items()},
        }
        command = _command("contrail-manager", work / "manager.yaml", configuration)
        super().__init__(command, listen=listen, log=work / "manager.log", environment=_environment())

    @property
    def leads(self) -> bool:
        """Whether it is the leader; standbys reject API requests."""
        return self.get("/v1/events?name=none") is not None

    def wait_until_it_leads(self) -> None:
        """Waits until it leads and has processed every existing pod."""
        self.wait_until(lambda: self.leads, what="leading")
        self.wait_until_ready()

    def items(self, kind: str, query: str = "") -> list[dict[str, Any]]:
        """The items that its API lists for `pods`, `networks`, `interfaces` or `events`."""
        items = every_item(self.get, f"/v1/{kind}{query}")
        assert items is not None, self.log.read_text()[-3000:]
        return items


class AgentProcess(ServedProcess):
    """`contrail-agent` of a node. `settings` are further configuration keys; its files are below `work`."""

    def __init__(self, work: Path, kubeconfig: Path, *, node: str, **settings: Any) -> None:
        work.mkdir(parents=True, exist_ok=True)
        listen = f"{_ANY}:{free_port()}"
        self.node = node
        self.socket = work / "agent.sock"
        self.ports = work / "ports"
        configuration = {
            "store": {"kind": "kubernetes", "kubeconfig": str(kubeconfig)},
            "listen": listen,
            "socket": str(self.socket),
            "ports-dir": str(self.ports),
            **{key.replace("_", "-"): value for key, value in settings.items()},
        }
        command = _command("contrail-agent", work / "agent.yaml", configuration)
        super().__init__(
            command, listen=listen, log=work / "agent.log", environment=_environment() | {"NODE_NAME": node}
        )

    def interfaces(self, namespace: str, pod: str, *, wait: float = 0) -> list[dict[str, Any]]:
        """The interfaces that it serves for a pod, after at most `wait` seconds; empty for an unknown pod."""
        query = f"?wait={wait:g}" if wait else ""
        return self.get(f"/vm-cfg/k8s__{namespace}__{pod}{query}") or []


def plain_kubeconfig(folder: Path, url: str) -> Path:
    """Writes a kubeconfig for a server without authentication and returns its path."""
    document = {
        "clusters": [{"name": "plain", "cluster": {"server": url}}],
        "contexts": [{"name": "plain", "context": {"cluster": "plain", "user": "anybody"}}],
        "users": [{"name": "anybody", "user": {}}],
        "current-context": "plain",
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(document))
    return file


@contextmanager
def running(*processes: ServedProcess) -> Iterator[None]:
    """Starts the processes one by one, each when the previous is ready, and kills the rest when the context is left."""
    try:
        for process in processes:
            process.start()
        yield
    finally:
        for process in processes:
            if process.process is not None and process.process.poll() is None:
                process.kill()


def _command(program: str, file: Path, configuration: dict[str, Any]) -> list[str]:
    file.write_text(json.dumps(configuration))  # JSON is valid YAML
    return [str(BINARIES / program), "--config", str(file)]


def _environment() -> dict[str, str]:
    """The environment with warnings enabled, for tests that search the log for them."""
    return {**os.environ, "PYTHONWARNINGS": "default"}
