"""A long TCP connection between two network namespaces, which notices resets, stalls and lost bytes."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from tests.support.echo_stream import Namespace

_CHUNK = b"a part of a long flow".ljust(1024, b".")
_TIMEOUT = 20.0  # seconds without progress: TCP has tried several times by then


class TcpFlow:
    """Sends from a namespace to an address of another one, `interval` seconds apart, in threads of its own."""

    def __init__(self, source: Namespace, target: Namespace, address: str, *, interval: float = 0.001) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with target.inside():
            listener = socket.create_server((address, 0), family=family)
        with listener:
            listener.settimeout(_TIMEOUT)
            with source.inside():
                self._source = socket.create_connection(listener.getsockname()[:2], timeout=_TIMEOUT)
            self._sink, _ = listener.accept()
        self._sink.settimeout(_TIMEOUT)
        self._interval = interval
        self._ending = threading.Event()
        self.sent = 0
        self.received = 0
        self.errors: list[str] = []

    @contextlib.contextmanager
    def running(self) -> Iterator["TcpFlow"]:
        """Sends while inside, and waits for the last bytes."""
        threads = [threading.Thread(target=self._guarded, args=(run,)) for run in (self._send, self._receive)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._ending.set()
            for thread in threads:
                thread.join()
            self._source.close()
            self._sink.close()

    def failure(self) -> str | None:
        """What broke the connection, None if all bytes arrived; after the end."""
        if self.errors:
            return "; ".join(self.errors)
        return None if self.received == self.sent > 0 else f"sent {self.sent} bytes, received {self.received}"

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except OSError as error:
            self.errors.append(f"{run.__name__.strip('_')}: {error}")

    def _send(self) -> None:
        while not self._ending.wait(self._interval):
            self._source.sendall(_CHUNK)
            self.sent += len(_CHUNK)
        self._source.shutdown(socket.SHUT_WR)

    def _receive(self) -> None:
        while received := self._sink.recv(1 << 16):
            self.received += len(received)
