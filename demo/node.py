"""Runs the embedded node (manager, store and agent) as a process on a folder of manifests.

It runs in the network namespace of the caller, which is the simulated node; its API is reachable only there.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from contrailctl.endpoint import Endpoint
from contrailctl.errors import UnreachableError
from demo.errors import NodeError
from demo.resources import DemoResources

READY_TIMEOUT = 30.0
STOP_TIMEOUT = 8.0  # the node stops within 5 s
_ADDRESS = "127.0.0.1:8083"
_POLL = 0.1
_REQUEST_TIMEOUT = 5.0
_LOG_LINES = 15
_CONFIGURATION = """\
pod-network:
  subnets: [10.32.0.0/12, "fd00:32::/64"]  # both families, so that the matrix has both at index 0 too
"""

BIN_DIR = os.path.dirname(sys.executable)
"""Where the project's commands are installed."""


class DemoNode:
    """A running embedded node. Methods raise NodeError."""

    def __init__(self, resources: DemoResources, manifests: str) -> None:
        self._resources = resources
        self.endpoint = Endpoint(f"http://{_ADDRESS}", _REQUEST_TIMEOUT)
        with open(resources.manager_configuration, "w") as file:
            file.write(_CONFIGURATION)
        command = [os.path.join(BIN_DIR, "contrail-manager"), "--embedded", "--manifests", manifests]
        with open(resources.log_file, "wb") as log:
            options = ["--config", resources.manager_configuration]
            options += ["--data-dir", resources.data_dir, "--listen", _ADDRESS]
            self._process = subprocess.Popen(
                [*command, *options, "--netns-dir", resources.networks],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches only the demo, which then stops the node
            )
        _record_process(resources, self._process.pid)

    @property
    def pid(self) -> int:
        """Process id of the node."""
        return self._process.pid

    def wait_until_ready(self) -> None:
        """Waits until the node has loaded its manifests and serves them."""
        deadline = time.monotonic() + READY_TIMEOUT
        reasons = "no response"
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise NodeError(f"node: exited with status {self._process.returncode}:\n{self._log_tail()}")
            with contextlib.suppress(UnreachableError):  # not listening yet
                status, body = self.endpoint.request("/readyz")
                if status == 200:
                    return
                reasons = body.decode(errors="replace")
            threading.Event().wait(_POLL)
        raise NodeError(f"node: not ready after {READY_TIMEOUT:g} s: {reasons}\n{self._log_tail()}")

    def stop(self) -> int:
        """Stops the node and returns its exit status."""
        self._process.terminate()
        try:
            return self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired as error:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT)
            raise NodeError(f"node: did not stop within {STOP_TIMEOUT:g} s, killed:\n{self._log_tail()}") from error

    def _log_tail(self) -> str:
        with open(self._resources.log_file, errors="replace") as log:
            return "".join(log.readlines()[-_LOG_LINES:]).rstrip()


def stop_kept_node(resources: DemoResources) -> None:
    """Stops the node that an earlier run kept, but no other process that has reused its pid."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(resources.process_file, "rb") as file:
        kept = json.load(file)
        with open(os.pidfd_open(kept["pid"]), "rb") as process:
            if identify(kept["pid"]) != kept:
                return
            signal.pidfd_send_signal(process.fileno(), signal.SIGTERM)
            if not select.select([process], [], [], STOP_TIMEOUT)[0]:
                signal.pidfd_send_signal(process.fileno(), signal.SIGKILL)


def _record_process(resources: DemoResources, pid: int) -> None:
    with open(resources.process_file, "wb") as file:
        file.write(msgspec.json.encode(identify(pid)))


def identify(pid: int) -> Mapping[str, Any]:
    """Returns pid and start time of a process; the pid alone is ambiguous, since the kernel reuses it."""
    with open(f"/proc/{pid}/stat") as file:
        # Field 22; the command name before it is in parentheses and may itself contain blanks and parentheses.
        start = file.read().rpartition(")")[2].split()[19]
    return {"pid": pid, "start": start}
