"""Client of the fork server, for calls of the plugin and daemons; the first one starts the server."""

import atexit
import functools
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.support import fork_server

DEADLINE = 50.0  # seconds for one call
_MAX_READ = 65536


class CallOutcome(NamedTuple):
    """Exit status (negative: the signal that killed it) and output."""

    status: int
    stdout: bytes
    stderr: bytes


def run_forked(environment: Mapping[str, str], netns: str, stdin: bytes, *, kill_at: int = 0) -> CallOutcome:
    """Runs one call in the network namespace at the path; with `kill_at` it kills itself after so many steps."""
    streams = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
    try:
        os.write(streams[0], stdin)
        os.lseek(streams[0], 0, os.SEEK_SET)
        with _started(streams, environment=dict(environment), netns=netns, kill_at=kill_at) as connection:
            status = int(connection.recv(16))
        return CallOutcome(status, *(_content(stream) for stream in streams[1:]))
    finally:
        for stream in streams:
            os.close(stream)


class ForkedDaemon:
    """A daemon in the network namespace at the path; with `kill_at` it kills itself during its first call."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], netns: str, *, kill_at: int = 0
    ) -> None:
        self._log = os.memfd_create("stderr")
        self._status: int | None = None
        self._ended: set[str] = set()
        self._reading = threading.Lock()
        self._ends, ends = os.pipe()
        streams = [os.open(os.devnull, os.O_RDWR), ends, self._log]
        try:
            self._connection = _started(
                streams, environment=dict(environment), netns=netns, kill_at=kill_at, daemon=list(arguments)
            )
        finally:
            for stream in streams[:2]:
                os.close(stream)

    def logged(self) -> bytes:
        """Its standard error so far."""
        return _content(self._log)

    def await_end(self, number: str) -> bool:
        """Waits for the end of the call with this number (True) or of the daemon (False)."""
        with self._reading:
            while number not in self._ended:
                assert select.select([self._ends], [], [], DEADLINE)[0], (
                    f"call {number}: timed out after {DEADLINE:g} s"
                )
                lines = os.read(self._ends, _MAX_READ)
                if not lines:
                    return False
                self._ended.update(lines.decode().split())
        return True

    def close(self) -> None:
        """Waits for its end and closes its descriptors."""
        self.wait()
        os.close(self._ends)
        os.close(self._log)

    def wait(self) -> int:
        """Waits for its end and returns its exit status (negative: the signal that killed it)."""
        if self._status is None:
            self._status = int(self._connection.recv(16))
            self._connection.close()
        return self._status

    def ended(self) -> int | None:
        """Its exit status, None while it runs."""
        if self._status is None and not select.select([self._connection], [], [], 0)[0]:
            return None
        return self.wait()


def _started(streams: Sequence[int], **request: Any) -> socket.socket:
    """Sends a start request to the server; the connection delivers the exit status."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(DEADLINE)
    connection.connect(_server().address)
    socket.send_fds(connection, [json.dumps(request).encode()], streams)
    return connection


def _content(stream: int) -> bytes:
    return os.pread(stream, os.fstat(stream).st_size, 0)


def server_processes() -> set[int]:
    """Process ID of the server, if it runs."""
    return {_server().pid} if _server.cache_info().currsize else set()


class _Server(NamedTuple):
    """Path of the server's socket, and its process ID."""

    address: str
    pid: int


@functools.cache
def _server() -> _Server:
    """Starts the server. It exits with this process, even if this process is killed."""
    folder = tempfile.TemporaryDirectory(prefix="ct-")
    address = f"{folder.name}/forks.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        listener.listen(256)
        command = [sys.executable, "-I", fork_server.__file__, str(listener.fileno())]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
    atexit.register(_stop, process, folder)
    return _Server(address, process.pid)


def _stop(process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]) -> None:
    process.communicate(timeout=10)
    folder.cleanup()
