"""The embedded node as a process: manager, store and agent in one, started on a folder of manifests.

It is started in the network namespace of the caller, which stands for the node: its API is reached there alone.
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

from contrail_embedded.demo.errors import NodeError
from contrail_embedded.demo.place import DemoDirectory
from contrailctl.errors import UnreachableError
from contrailctl.fetch import Endpoint

READY_TIMEOUT = 30.0
STOP_TIMEOUT = 8.0  # it has 5 seconds
_ADDRESS = "127.0.0.1:8083"
_POLL = 0.1
_REQUEST_TIMEOUT = 5.0
_LOG_LINES = 15

BIN_DIR = os.path.dirname(sys.executable)
"""Where the project's commands are installed."""


class Node:
    """A started embedded node. Methods raise NodeError."""

    def __init__(self, place: DemoDirectory, manifests: str) -> None:
        self._place = place
        self.endpoint = Endpoint(f"http://{_ADDRESS}", _REQUEST_TIMEOUT)
        command = [os.path.join(BIN_DIR, "contrail-manager"), "--embedded", "--manifests", manifests]
        with open(place.log_file, "wb") as log:
            self._process = subprocess.Popen(
                [*command, "--data-dir", place.data_dir, "--listen", _ADDRESS],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the demo, which then stops the node
            )
        _remember(place, self._process.pid)

    def wait_until_ready(self) -> None:
        """Returns when the node has read its manifests and serves them."""
        give_up = time.monotonic() + READY_TIMEOUT
        reasons = "it does not answer"
        while time.monotonic() < give_up:
            if self._process.poll() is not None:
                raise NodeError(f"the node ended with status {self._process.returncode}:\n{self._end_of_log()}")
            with contextlib.suppress(UnreachableError):  # not listening yet
                status, body = self.endpoint.ask("/readyz")
                if status == 200:
                    return
                reasons = body.decode(errors="replace")
            threading.Event().wait(_POLL)
        raise NodeError(f"the node is not ready after {READY_TIMEOUT:g} s: {reasons}\n{self._end_of_log()}")

    def stop(self) -> int:
        """Ends the node and returns its exit status."""
        self._process.terminate()
        try:
            return self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired as error:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT)
            raise NodeError(f"the node had to be killed:\n{self._end_of_log()}") from error

    def _end_of_log(self) -> str:
        with open(self._place.log_file, errors="replace") as log:
            return "".join(log.readlines()[-_LOG_LINES:]).rstrip()


def stop_kept_node(place: DemoDirectory) -> None:
    """Ends the node that an earlier run left; a process that only has its number now is left alone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(place.process_file, "rb") as file:
        kept = json.load(file)
        with open(os.pidfd_open(kept["pid"]), "rb") as process:
            if identify(kept["pid"]) != kept:
                return
            signal.pidfd_send_signal(process.fileno(), signal.SIGTERM)
            if not select.select([process], [], [], STOP_TIMEOUT)[0]:
                signal.pidfd_send_signal(process.fileno(), signal.SIGKILL)


def _remember(place: DemoDirectory, pid: int) -> None:
    with open(place.process_file, "wb") as file:
        file.write(msgspec.json.encode(identify(pid)))


def identify(pid: int) -> Mapping[str, Any]:
    """A process by its number and the moment of its start: numbers are used again."""
    with open(f"/proc/{pid}/stat") as file:
        start = file.read().rpartition(")")[2].split()[19]
    return {"pid": pid, "start": start}
