"""The embedded node as an operator starts it: a process of its own on a folder of manifests."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.ports import free_port

COMMAND = Path(sys.executable).parent / "contrail-manager"
DEADLINE = 30.0


class EmbeddedProcess:
    """`contrail-manager --embedded` below `work`: manifests in `work/manifests`, its data in `work/data`."""

    def __init__(self, work: Path, *, options: Sequence[str] = ()) -> None:
        self.manifests = work / "manifests"
        self.data = work / "data"
        self.log = work / "node.log"
        self.manifests.mkdir(exist_ok=True)
        self.listen = f"127.0.0.1:{free_port()}"
        self.process: subprocess.Popen[bytes] | None = None
        self._options = options

    @property
    def socket(self) -> Path:
        """The agent's Unix socket."""
        return self.data / "agent.sock"

    def start(self) -> None:
        """Starts it and returns once it is ready."""
        command = [str(COMMAND), "--embedded", "--manifests", str(self.manifests), "--data-dir", str(self.data)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*command, "--listen", self.listen, *self._options], stderr=log)
        self.wait_until(lambda: self.get("/readyz") is not None, what="ready")

    def kill(self) -> None:
        """Ends it as a power cut would, leaving no time to clean up."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> int:
        """Ends it as a supervisor would and returns its exit status."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(10)

    def get(self, path: str) -> Any:
        """The JSON of a page; None if it is not served, or not with status 200."""
        try:
            with urllib.request.urlopen(f"http://{self.listen}{path}", timeout=10) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError):
            return None

    def items(self, kind: str, query: str = "") -> list[dict[str, Any]]:
        """What the manager's API lists: `pods`, `networks`, `interfaces` or `events`."""
        answer = self.get(f"/v1/{kind}{query}")
        assert answer is not None, self.log.read_text()
        items: list[dict[str, Any]] = answer["items"]
        return items

    def pod_states(self) -> dict[str, str]:
        """State of each pod, by `namespace/name`."""
        return {f"{item['namespace']}/{item['name']}": item["state"] for item in self.items("pods")}

    def wait_until(self, holds: Callable[[], bool], *, what: str) -> None:
        """Returns once the condition holds; fails with the log after a deadline."""
        assert self.process is not None
        give_up = time.monotonic() + DEADLINE
        while not holds():
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.log.read_text()}"
            assert time.monotonic() < give_up, f"not {what} within {DEADLINE} s: {self.log.read_text()[-3000:]}"
            time.sleep(0.02)  # noqa: TID251 - another process is watched, which tells no event
