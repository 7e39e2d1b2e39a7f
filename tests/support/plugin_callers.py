"""The ways in which a runtime's call reaches the plugin: its entry point, or the native shim and the daemon."""

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
    """One of them, on one node."""

    def run(self, environment: Mapping[str, str], stdin: bytes, *, kill_at: int = 0) -> CallOutcome:
        """Runs one call to its end; `kill_at`: who does the work kills itself after so many steps."""

    def start(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Starts one call as a process of its own, which then waits for its standard input."""

    def kill(self, call: subprocess.Popen[bytes]) -> None:
        """Kills who does the work of a call."""

    def close(self) -> None:
        """Ends what it has running."""


class EntryPoint:
    """Each call is a process that does all by itself."""

    def __init__(self, node: Netns) -> None:
        self._node = node

    def run(self, environment: Mapping[str, str], stdin: bytes, *, kill_at: int = 0) -> CallOutcome:
        """In a fork that has the plugin loaded."""
        return run_forked(environment, self._node.path, stdin, kill_at=kill_at)

    def start(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """As a runtime starts it."""
        return _start(COMMAND, self._node, environment)

    def kill(self, call: subprocess.Popen[bytes]) -> None:
        """The call is a process of its own."""
        call.kill()

    def close(self) -> None:
        """Nothing is running."""


class ShimAndDaemon:
    """Each call is a process of the shim; the daemon starts with the first of them, and again when it was killed.

    `configuration` has further keys of the daemon's file, `options` are further ones of its command line.
    """

    def __init__(self, node: Netns, node_file: Path) -> None:
        self._node = node
        self._node_file = node_file
        self._folder = tempfile.TemporaryDirectory(prefix="ct-")
        self._daemon: ForkedDaemon | None = None
        self.configuration: dict[str, Any] = {}
        self.options: list[str] = []
        self._shall_die = False
        self._starting = threading.Lock()
        self.socket_path = f"{self._folder.name}/cni.sock"

    def run(self, environment: Mapping[str, str], stdin: bytes, *, kill_at: int = 0) -> CallOutcome:
        """The shim's output, with what the daemon logged meanwhile; the daemon's end if it killed itself."""
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
        """The shim as a runtime starts it."""
        self.daemon()
        return _start([shim()], self._node, self._with_socket(environment))

    def daemon(self, *, kill_at: int = 0) -> ForkedDaemon:
        """The daemon, started if need be."""
        with self._starting:
            return self._started(kill_at)

    def _started(self, kill_at: int) -> ForkedDaemon:
        if self._daemon is not None and self._daemon.ended() is not None:
            self._daemon.close()
            self._daemon = None
        if self._daemon is None:
            file = Path(self._folder.name) / "cnid.yaml"
            file.write_text(json.dumps({"socket": self.socket_path, **self.configuration}))  # JSON is YAML
            self._shall_die = bool(kill_at)
            environment = {**os.environ, "CONTRAIL_CNI_CONFIG": str(self._node_file)}
            self._daemon = ForkedDaemon(
                ["--config", str(file), *self.options], environment, self._node.path, kill_at=kill_at
            )
            await_listener(self.socket_path)
        return self._daemon

    @property
    def pid(self) -> int:
        """The daemon's process."""
        return listener_of(self.socket_path)

    def stop(self) -> None:
        """Has the daemon drain and end."""
        if self._daemon is not None and self._daemon.ended() is None:
            how = signal.SIGKILL if self._shall_die else signal.SIGTERM
            with contextlib.suppress(*[OSError] if self._shall_die else []):  # it may be killing itself just now
                os.kill(listener_of(self.socket_path), how)
            assert self._daemon.wait() == (-how if self._shall_die else 0), self._daemon.logged()

    def kill(self, call: subprocess.Popen[bytes]) -> None:
        """Kills the daemon, and with it all calls that it is at."""
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
    """Returns when somebody listens at the path."""
    for _ in Deadline(10).attempts(0.002, 0.05):
        with contextlib.suppress(OSError):
            listener_of(socket_path)
            return
    raise AssertionError(f"nobody listens at {socket_path}")


def listener_of(socket_path: str) -> int:
    """The process that listens at the path; raises `OSError`."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(socket_path)
        return int(struct.unpack("@iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])


def _start(command: list[str], node: Netns, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    with node.inside():
        return subprocess.Popen(command, env=dict(environment), stdin=pipe, stdout=pipe, stderr=pipe)
