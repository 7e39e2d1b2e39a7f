"""`contrailctl check connectivity --live` on a server whose kubelets are played, and what it leaves there."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from contrailctl.check.live.run import RUN_LABEL
from tests.support.cluster_processes import BINARIES
from tests.support.real_apiserver.server import ApiServer
from tests.support.temporary_pods import Object

NODES = ("node-1", "node-2")
_TIMEOUT = 90.0


class LiveCheck:
    """The command on a server, and what it leaves there. Kubelets start pods unless `is_started` says no."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.server = server
        self.kubeconfig = server.kubeconfig()
        self.is_started: Callable[[Object], bool] = lambda _: True
        self.seen: dict[str, Object] = {}
        self._changed = threading.Condition()
        self._folder = folder

    def start(self, *options: str, nodes: tuple[str, ...] = NODES) -> "subprocess.Popen[str]":
        """Starts the command."""
        named = [word for node in nodes for word in ("--node", node)]
        command = [str(BINARIES / "contrailctl"), "check", "connectivity", "--kubeconfig", str(self.kubeconfig)]
        given = ["--store-only", "--live", "--image", "none.example/none", "--output", "json"]
        environment = {**os.environ, "PATH": f"{self._folder}:{os.environ['PATH']}"}
        return subprocess.Popen(
            [*command, *given, *named, *options],
            text=True,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ended(self, process: "subprocess.Popen[str]") -> tuple[int, str, str]:
        """Waits for its end; returns status and output."""
        out, err = process.communicate(timeout=_TIMEOUT)
        return process.returncode, out, err

    def run(self, *options: str, nodes: tuple[str, ...] = NODES) -> tuple[int, str, str]:
        """Runs the command."""
        return self.ended(self.start(*options, nodes=nodes))

    def start_pod(self, pod: Object) -> bool:
        """Called by kubelets."""
        with self._changed:
            self.seen[pod["metadata"]["name"]] = pod
            self._changed.notify_all()
        return self.is_started(pod)

    def await_pods(self, number: int) -> None:
        """Waits until kubelets have seen so many pods."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.seen) >= number, _TIMEOUT)

    def left(self) -> list[str]:
        """Names of pods and namespaces of all runs."""
        paths = [f"/api/v1/{kind}?labelSelector={RUN_LABEL}" for kind in ("pods", "namespaces")]
        return [each["metadata"]["name"] for path in paths for each in self.server.ask("GET", path)["items"]]

    def interrupt(self, process: "subprocess.Popen[str]", number: signal.Signals) -> tuple[int, str, str]:
        """Sends a signal and waits for the end."""
        process.send_signal(number)
        return self.ended(process)
