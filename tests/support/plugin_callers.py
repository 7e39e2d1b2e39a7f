"""Callers of the plugin, as runtimes call it: by its entry point, or by the native shim and the daemon."""

import contextlib
import functools
import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import cni_contrail.__main__ as start
from cni_contrail.deadline import Deadline
from tests.support.fork_server import NUMBER
from tests.support.netns import Netns
from tests.support.plugin_forks import DEADLINE, CallOutcome, ForkedDaemon, run_forked
from tests.support.shim import build_shim

COMMAND = [sys.executable, "-I", "-S", start.__file__]


_numbers = itertools.count()
_ANSWERED_BY_SHIM = (None, "", "VERSION")


class Caller(Protocol):
    """A way to call the plugin on one node."""

    def run(self, environment: Mapping[str, str], stdin: bytes, *, kill_at: int = 0) -> CallOutcome:
        """Runs one call to its end. With `kill_at`, the working process kills itself after so many steps."""

    def start(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Starts a process for one call, which waits for its standard input."""

    def kill(self, call: subprocess.Popen[bytes]) -> None:
        """Kills the process that executes a call."""

    def close(self) -> None:
        """Stops all processes."""


class EntryPoint:
    """Each call is a self-contained process."""

    def __init__(self, node: Netns) -> None:
        self._node = node

    def run(self, environment: Mapping[str, str], stdin: bytes, *, kill_at: int = 0) -> CallOutcome:
        """Runs the call in a fork that has the plugin loaded."""
        return run_forked(environment, self._node.path, stdin, kill_at=kill_at)

    def start(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Starts the entry point as a runtime does."""
        return _start(COMMAND, self._node, environment)

    def kill(self, call: subprocess.Popen[bytes]) -> None:
        """Kills the process of the call."""
        call.kill()

    def close(self) -> None:
        """Nothing to stop."""


class ShimAndDaemon:
    """Each call is a shim process; the first call starts the daemon, and a later one restarts a killed daemon.

    `configuration` has further keys of the daemon's file, `options` further command line options.
    """

    def __init__(self, node: Netns, node_file: Path) -> None:
        self._node = node
        self._node_file = node_file
        self._folder = tempfile.TemporaryDirectory(prefix="ct-")
        self._daemon: ForkedDaemon | None = None
        self.configuration: dict[str, Any] = {}
        self.options: list[str] = []
        self._kills_itself = False
        self._starting = threading.Lock()
        self.socket_path = f"{self._folder.name}/cni.sock"

    def run(self, environment: Mapping[str, str], stdin: bytes, *, kill_at: int = 0) -> CallOutcome:
        """Returns the shim's output and the daemon's log of the call, or the status of a daemon that killed itself."""
        if kill_at:
            self.stop()
        daemon = self.daemon(kill_at=kill_at)
        logged = daemon.logged()
        number = str(next(_numbers))
        numbered = {**self._with_socket(environment), NUMBER: number}
        with _start([shim()], self._node, numbered) as process:
            stdout, stderr = process.communicate(stdin, timeout=DEADLINE)
        if environment.get("CNI_COMMAND") in _ANSWERED_BY_SHIM or daemon.await_end(number):
            return CallOutcome(process.returncode, stdout, stderr + daemon.logged()[len(logged) :])
        return CallOutcome(daemon.wait(), stdout, stderr)

    def start(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Starts the shim as a runtime does."""
        self.daemon()
        return self.start_without_daemon(environment)

    def start_without_daemon(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Starts the shim, whether the daemon runs or not."""
        return _start([shim()], self._node, self._with_socket(environment))

    def daemon(self, *, kill_at: int = 0) -> ForkedDaemon:
        """The daemon, started if it is not running."""
        with self._starting:
            return self._started(kill_at)

    def _started(self, kill_at: int) -> ForkedDaemon:
        if self._daemon is not None and self._daemon.ended() is not None:
            self._daemon.close()
            self._daemon = None
        if self._daemon is None:
            file = Path(self._folder.name) / "cnid.yaml"
            file.write_text(json.dumps({"socket": self.socket_path, **self.configuration}))  # JSON is YAML
            self._kills_itself = bool(kill_at)
            environment = {**os.environ, "CONTRAIL_CNI_CONFIG": str(self._node_file)}
            self._daemon = ForkedDaemon(
                ["--config", str(file), *self.options], environment, self._node.path, kill_at=kill_at
            )
            await_listener(self.socket_path)
        return self._daemon

    @property
    def pid(self) -> int:
        """Process ID of the daemon."""
        return listener_of(self.socket_path)

    def stop(self) -> None:
        """Drains and stops the daemon."""
        if self._daemon is not None and self._daemon.ended() is None:
            how = signal.SIGKILL if self._kills_itself else signal.SIGTERM
            with contextlib.suppress(*[OSError] if self._kills_itself else []):  # it may have killed itself already
                os.kill(listener_of(self.socket_path), how)
            assert self._daemon.wait() == (-how if self._kills_itself else 0), self._daemon.logged()

    def kill(self, call: subprocess.Popen[bytes]) -> None:
        """Kills the daemon and with it all calls in progress."""
        with self._starting:
            os.kill(listener_of(self.socket_path), signal.SIGKILL)
            assert self._daemon is not None
            self._daemon.wait()

    def close(self) -> None:
        """Stops the daemon and removes its folder."""
        self.stop()
        if self._daemon is not None:
            self._daemon.close()
        self._folder.cleanup()

    def _with_socket(self, environment: Mapping[str, str]) -> dict[str, str]:
        return {**environment, "CONTRAIL_CNI_SOCKET": self.socket_path}


@functools.cache
def shim() -> str:
    """The path of the shim."""
    return build_shim()


def await_listener(socket_path: str) -> None:
    """Waits until a process listens at the path."""
    for _ in Deadline(30).attempts(0.002, 0.05):
        with contextlib.suppress(OSError):
            listener_of(socket_path)
            return
    raise AssertionError(f"{socket_path}: no listener within 30 s")


def listener_of(socket_path: str) -> int:
    """Process ID of the listener at the path. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(socket_path)
        return int(struct.unpack("@iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])


def _start(command: list[str], node: Netns, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    with node.inside():
        return subprocess.Popen(command, env=dict(environment), stdin=pipe, stdout=pipe, stderr=pipe)
