"""Throughput of one TCP stream between two network namespaces, with plain sockets and copies as in most programs.

The sender is a process of its own, this module; sender and receiver run on two processors, always the same ones.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tests.support.netns import Netns

_CHUNK = 1 << 18
_WARM_UP = 0.1  # share of the time that is not measured
_TIMEOUT = 10.0  # seconds without progress


def gigabits_per_second(sender: Netns, receiver: Netns, address: str, seconds: float) -> float:
    """Sends for so many seconds to the address, which is the receiver's, and returns the rate of the received data."""
    processors = os.sched_getaffinity(0)
    with receiver.inside():
        listener = socket.create_server((address, 0))
    with listener:
        with sender.inside():
            source = socket.create_connection(listener.getsockname(), timeout=_TIMEOUT)
        sink, _ = listener.accept()
    with sink, _sending(source, min(processors)), ThreadPoolExecutor(1) as pool:
        sink.settimeout(_TIMEOUT)
        return pool.submit(_receive, sink, max(processors), seconds).result()


@contextmanager
def _sending(source: socket.socket, processor: int) -> Iterator[None]:
    source.setblocking(True)
    command = [sys.executable, "-I", "-S", __file__, str(source.fileno()), str(processor)]
    with source, subprocess.Popen(command, pass_fds=[source.fileno()]) as process:
        try:
            yield
        finally:
            process.kill()


def _receive(sink: socket.socket, processor: int, seconds: float) -> float:
    os.sched_setaffinity(0, {processor})
    buffer = bytearray(_CHUNK)
    _receive_for(sink, buffer, seconds * _WARM_UP)
    received, duration = _receive_for(sink, buffer, seconds)
    return received * 8 / duration / 1e9


def _receive_for(sink: socket.socket, buffer: bytearray, seconds: float) -> tuple[int, float]:
    """Returns the number of bytes received and the seconds that it took."""
    started = now = time.perf_counter()
    received = 0
    while now - started < seconds:
        received += sink.recv_into(buffer)
        now = time.perf_counter()
    return received, now - started


def _send(descriptor: int, processor: int) -> None:
    """Sends until it is killed."""
    os.sched_setaffinity(0, {processor})
    data = bytes(_CHUNK)
    with socket.socket(fileno=descriptor) as source:
        while True:
            source.send(data)


if __name__ == "__main__":
    _send(*map(int, sys.argv[1:]))
