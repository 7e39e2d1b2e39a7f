"""`/healthz`, `/readyz` and `/metrics` over HTTP, where the configuration says so."""

from __future__ import annotations

import contextlib
import http.server
import importlib.metadata
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from cni_contrail.daemon.errors import SocketError

Readiness = Callable[[], str]
"""Says what keeps the node from serving an ADD; nothing: it is ready."""

_TIMEOUT = 5.0  # seconds to wait for what a client has to say
_MOST_AT_ONCE = 16  # requests; descriptors and threads are there for calls


@contextlib.contextmanager
def status_server(address: tuple[str, int], readiness: Readiness, registry: CollectorRegistry) -> Iterator[None]:
    """Serves the pages meanwhile; raises `SocketError` if the address is not to be had."""
    try:
        server = _Server(address, readiness, registry)
    except OSError as error:
        raise SocketError(f"metrics-listen {address[0]}:{address[1]}: {error.strerror or error}") from error
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], readiness: Readiness, registry: CollectorRegistry) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.readiness = readiness
        self.registry = registry
        self._turns = threading.BoundedSemaphore(_MOST_AT_ONCE)
        super().__init__(address, _Pages)

    def verify_request(self, *_: object) -> bool:
        """Closes the connections that are too many."""
        return self._turns.acquire(blocking=False)

    def process_request(self, *request: Any) -> None:
        """Starts a thread for one that is not, if the machine has one."""
        try:
            super().process_request(*request)
        except RuntimeError:
            self._turns.release()
            raise

    def process_request_thread(self, *request: Any) -> None:
        """Serves it."""
        try:
            super().process_request_thread(*request)
        finally:
            self._turns.release()

    def handle_error(self, *request: Any) -> None:
        """A client that hangs up is no event."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*request)


class _Pages(http.server.BaseHTTPRequestHandler):
    server: _Server
    timeout = _TIMEOUT

    def do_GET(self) -> None:
        """Answers a page."""
        match self.path.partition("?")[0]:
            case "/healthz":
                self._say(200, {"healthy": True, "version": importlib.metadata.version("contrail-multinet")})
            case "/readyz":
                reason = self.server.readiness()
                self._say(503 if reason else 200, {"ready": not reason, "reasons": [reason] if reason else []})
            case "/metrics":
                self._send(200, "text/plain; version=0.0.4", generate_latest(self.server.registry))
            case path:
                self._say(404, {"error": f"there is no page {path}"})

    def log_message(self, *_: object) -> None:
        """A page that was asked for is no event."""

    def _say(self, status: int, document: object) -> None:
        self._send(status, "application/json", json.dumps(document).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
