"""Runner of the native shim, and a scripted daemon that performs the protocol step by step."""

import functools
import os
import select
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple, Self

ROOT = Path(__file__).parents[2]
STEP_TIMEOUT = 20.0  # seconds for each step
HEADER = struct.Struct(">4sHHiII")
ANSWER = struct.Struct(">II")
SANITIZERS = {"ASAN_OPTIONS": "exitcode=99:detect_leaks=0", "UBSAN_OPTIONS": "exitcode=99:print_stacktrace=1"}
ADD = {"CNI_COMMAND": "ADD"}

Environment = Mapping[str, str] | Mapping[bytes, bytes]


@functools.cache
def build_shim(*options: str) -> str:
    """Builds the shim if needed and returns its path; `--sanitize` is an option of the script."""
    command = [str(ROOT / "scripts" / "build-shim"), *options]
    built = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout
    return str(ROOT / built.strip())


class ShimOutcome(NamedTuple):
    """Exit status of the shim (negative: the signal that killed it) and its output."""

    status: int
    stdout: bytes
    stderr: bytes


class Shim:
    """A binary of the shim and the socket path of its daemon."""

    def __init__(self, binary: str, socket_path: str) -> None:
        self.binary = binary
        self.socket_path = socket_path

    def environment(self, environment: Environment) -> dict[bytes, bytes]:
        """The environment with the socket path and the sanitizers' options added."""
        ours = {"CONTRAIL_CNI_SOCKET": self.socket_path, **SANITIZERS}
        return {os.fsencode(key): os.fsencode(value) for each in (ours, environment) for key, value in each.items()}

    @contextmanager
    def started(
        self,
        environment: Environment,
        stdin: bytes | IO[bytes] | int = b"",
        stdout: int = subprocess.PIPE,
        prefix: tuple[str, ...] = (),
    ) -> Iterator["Running"]:
        """Starts one call, through the command `prefix` if given, and kills it on exit if it still runs."""
        source = as_file(stdin) if isinstance(stdin, bytes) else stdin
        process = subprocess.Popen(
            [*prefix, self.binary],
            env=self.environment(environment),
            stdin=source,
            stdout=stdout,
            stderr=subprocess.PIPE,
        )
        if isinstance(stdin, bytes):
            assert isinstance(source, int)
            os.close(source)
        with process:
            try:
                yield Running(process)
            finally:
                process.kill()

    def run(
        self, environment: Environment, stdin: bytes | IO[bytes] | int = b"", prefix: tuple[str, ...] = ()
    ) -> ShimOutcome:
        """Runs one call to its end, without a scripted daemon."""
        with self.started(environment, stdin, prefix=prefix) as running:
            return running.outcome()


class Running:
    """A running shim."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def outcome(self) -> ShimOutcome:
        """Waits for its end and returns the outcome; fails the test if a sanitizer reported an error."""
        stdout, stderr = self.process.communicate(timeout=STEP_TIMEOUT)
        status = self.process.returncode
        assert status in (0, 1), (status, stderr)
        return ShimOutcome(status, stdout or b"", stderr)


def as_file(content: bytes) -> int:
    """A descriptor that reads the content; the caller's to close."""
    descriptor = os.memfd_create("stdin")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def identity(file: int | str) -> tuple[int, int]:
    """Device and inode of a file, given by descriptor or path."""
    stat = os.stat(file)
    return stat.st_dev, stat.st_ino


class Received(NamedTuple):
    """A request; `netns` is the identity of the received sandbox, an errno, or -1 without a sandbox."""

    version: int
    netns: tuple[int, int] | int
    environment: bytes
    stdin: bytes

    @property
    def variables(self) -> list[bytes]:
        """The variables as KEY=VALUE."""
        assert self.environment == b"" or self.environment.endswith(b"\0")
        return self.environment.split(b"\0")[:-1]


class Connection:
    """The daemon's end of one call."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        connection.settimeout(STEP_TIMEOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def receive(self) -> Received:
        """Reads the complete request."""
        data, descriptors, _, _ = socket.recv_fds(self.socket, 65536, 2)
        try:
            while len(data) < HEADER.size:
                data += self._more()
            magic, version, reserved, netns, environment_size, input_size = HEADER.unpack(data[: HEADER.size])
            assert (magic, reserved, len(descriptors)) == (b"cnid", 0, 1 if netns == 0 else 0)
            parts = bytearray(data[HEADER.size :])
            while len(parts) < environment_size + input_size:
                parts += self._more()
            assert len(parts) == environment_size + input_size
            netns_received = identity(descriptors[0]) if descriptors else netns
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return Received(version, netns_received, bytes(parts[:environment_size]), bytes(parts[environment_size:]))

    def acknowledge(self) -> None:
        """Acknowledges the request."""
        self.socket.sendall(b"\1")

    def answer(self, status: int, output: bytes) -> None:
        """Sends a well-formed response."""
        self.socket.sendall(ANSWER.pack(status, len(output)) + output)

    def end(self) -> None:
        """Shuts down the sending side."""
        self.socket.shutdown(socket.SHUT_WR)

    def receipt(self) -> bytes:
        """Reads until the shim ends."""
        data = b""
        with suppress(ConnectionResetError):  # the shim was killed before it read the response
            while more := self.socket.recv(65536):
                data += more
        return data

    def _more(self) -> bytes:
        data = self.socket.recv(1 << 20)
        assert data, "the request is truncated"
        return data


class ScriptedDaemon:
    """A scripted daemon that listens at the shim's socket path."""

    def __init__(self, path: str, *, backlog: int = 64) -> None:
        self.path = path
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.settimeout(STEP_TIMEOUT)
        self._listener.bind(path)
        self._listener.listen(backlog)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def accept(self, timeout: float = STEP_TIMEOUT) -> Connection:
        """Accepts the next connection; raises `TimeoutError`."""
        self._listener.settimeout(timeout)
        return Connection(self._listener.accept()[0])

    def expect_nobody(self) -> None:
        """Fails the test if there is a connection."""
        assert not select.select([self._listener], [], [], 0)[0]

    def wait_for_call(self) -> None:
        """Waits for a connection."""
        assert select.select([self._listener], [], [], STEP_TIMEOUT)[0]

    def stop(self) -> None:
        """Stops like a killed daemon: the socket file remains."""
        self._listener.close()

    def take(self) -> tuple[Connection, Received]:
        """Accepts the next connection, then reads and acknowledges its request."""
        connection = self.accept()
        received = connection.receive()
        connection.acknowledge()
        return connection, received
