"""Runs calls of the plugin through the fork server, which is started with the first of them."""

import atexit
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import NamedTuple

from tests.support import fork_server

DEADLINE = 50.0  # seconds for one call


class Ended(NamedTuple):
    """Exit status (negative: the signal that killed it) and what was written."""

    status: int
    stdout: bytes
    stderr: bytes


def run_forked(environment: Mapping[str, str], netns: str, stdin: bytes, *, kill_at: int = 0) -> Ended:
    """Runs one call in the network namespace at the path; `kill_at`: it kills itself after so many steps."""
    streams = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
    try:
        os.write(streams[0], stdin)
        os.lseek(streams[0], 0, os.SEEK_SET)
        request = json.dumps({"environment": dict(environment), "netns": netns, "kill_at": kill_at}).encode()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(DEADLINE)
            connection.connect(_server())
            socket.send_fds(connection, [request], streams)
            status = int(connection.recv(16))
        return Ended(status, *(_content(stream) for stream in streams[1:]))
    finally:
        for stream in streams:
            os.close(stream)


def _content(stream: int) -> bytes:
    return os.pread(stream, os.fstat(stream).st_size, 0)


@functools.cache
def _server() -> str:
    """The address of the server, which ends with this process, however that ends."""
    folder = tempfile.TemporaryDirectory(prefix="ct-")
    address = f"{folder.name}/forks.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        listener.listen(256)
        command = [sys.executable, "-I", fork_server.__file__, str(listener.fileno())]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
    atexit.register(_stop, process, folder)
    return address


def _stop(process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]) -> None:
    process.communicate(timeout=10)
    folder.cleanup()
