"""Single-member etcd, controlled through its JSON gateway."""

import base64
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.free_port import free_port
from tests.support.real_apiserver.process import ServerProcess

_ALL = "/registry/"
_TIMEOUT = 30.0


class Etcd(ServerProcess):
    """Stores its data below `work` without fsync, so it does not survive a power failure."""

    def __init__(self, work: Path, command: Path) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        peers = f"http://127.0.0.1:{free_port()}"
        settings = {
            "name": "only",
            "data-dir": work / "etcd",
            "listen-client-urls": self.url,
            "advertise-client-urls": self.url,
            "listen-peer-urls": peers,
            "initial-advertise-peer-urls": peers,
            "initial-cluster": f"only={peers}",
            "experimental-watch-progress-notify-interval": "5s",  # kubeadm's value; bookmarks depend on it
            "unsafe-no-fsync": "true",
            "log-level": "warn",
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        super().__init__([str(command), *options], work / "etcd.log", is_ready=self._is_healthy)

    def compact(self) -> None:
        """Compacts the history up to the current revision."""
        revision = self._ask("/v3/kv/range", {"key": _encoded(_ALL)})["header"]["revision"]
        self._ask("/v3/kv/compaction", {"revision": revision, "physical": True})

    def empty(self, group: str = "") -> None:
        """Deletes all objects of an API group, or all objects."""
        prefix = f"{_ALL}{group}/" if group else _ALL
        after = prefix.removesuffix("/") + "0"  # the character after the slash
        self._ask("/v3/kv/deleterange", {"key": _encoded(prefix), "range_end": _encoded(after)})
        self._ask("/v3/kv/put", {"key": _encoded("emptied")})  # a read at its revision sees all deletions

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=_TIMEOUT) as answer:
                return bool(json.load(answer)["health"] == "true")
        except (urllib.error.URLError, ConnectionError):
            return False

    def _ask(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(self.url + path, data=json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            return json.load(answer)


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()
