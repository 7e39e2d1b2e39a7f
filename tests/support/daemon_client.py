"""Client of the daemon that performs the shim's protocol step by step, also incorrectly."""

import os
import socket
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from tests.support.shim import ANSWER, HEADER

STEP_TIMEOUT = 20.0  # seconds for each step


class DaemonResponse(NamedTuple):
    """Exit status and output."""

    status: int
    output: bytes


class DaemonClient:
    """One connection to the daemon."""

    def __init__(self, socket_path: str) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.settimeout(STEP_TIMEOUT)
        self._connection.connect(socket_path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()

    def ask(self, environment: Mapping[str, str], data: bytes = b"") -> None:
        """Sends a complete request with a descriptor of CNI_NETNS, or with the errno if it cannot be opened."""
        netns = environment.get("CNI_NETNS")
        if not netns:
            self.send(request(environment, data, netns=-1))
            return
        try:
            descriptor = os.open(netns, os.O_RDONLY)
        except OSError as error:
            self.send(request(environment, data, netns=error.errno or 0))
            return
        try:
            self.send(request(environment, data), [descriptor])
        finally:
            os.close(descriptor)

    def send(self, data: bytes, descriptors: Sequence[int] = ()) -> None:
        """Sends bytes, with the descriptors attached to the first byte."""
        if descriptors:
            sent = socket.send_fds(self._connection, [data], list(descriptors))
            data = data[sent:]
        self._connection.sendall(data)

    def acknowledged(self) -> float:
        """Waits for the acknowledgement and returns how many seconds that took."""
        begun = time.monotonic()
        assert self._read(1) == b"\1"
        return time.monotonic() - begun

    def answered(self, *, receipt: bool = True) -> DaemonResponse:
        """Reads the response. Without `receipt`, it is not confirmed."""
        status, length = ANSWER.unpack(self._read(ANSWER.size))
        answered = DaemonResponse(status, self._read(length))
        if receipt:
            self._connection.sendall(b"\1")
        return answered

    def is_closed(self) -> bool:
        """Waits for the next byte; whether the daemon closed the connection instead."""
        try:
            return self._connection.recv(1) == b""
        except ConnectionResetError:
            return True

    def hang_up(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def _read(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            part = self._connection.recv(length - len(data))
            assert part, f"closed after {data!r}"
            data += part
        return data


def request(
    environment: Mapping[str, str],
    data: bytes = b"",
    *,
    netns: int = 0,
    magic: bytes = b"cnid",
    version: int = 2,
) -> bytes:
    """The bytes of a request."""
    pairs = b"".join(os.fsencode(f"{key}={value}") + b"\0" for key, value in environment.items())
    return HEADER.pack(magic, version, 0, netns, len(pairs), len(data)) + pairs + data
