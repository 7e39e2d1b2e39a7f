"""HTTP server for `/healthz`, `/readyz` and `/metrics`, if the configuration sets `metrics-listen`."""

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
"""Returns why the node cannot serve an ADD, or empty if it is ready."""

_READ_TIMEOUT = 5.0  # seconds
_MAX_CONNECTIONS = 16  # descriptors and threads are reserved for CNI calls


@contextlib.contextmanager
def status_server(address: tuple[str, int], readiness: Readiness, registry: CollectorRegistry) -> Iterator[None]:
    """Serves the pages while the body runs; raises `SocketError` if it cannot listen on the address."""
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
        self._slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        super().__init__(address, _Handler)

    def verify_request(self, *_: object) -> bool:
        """Returns False, which closes the connection, if all slots are taken."""
        return self._slots.acquire(blocking=False)

    def process_request(self, *request: Any) -> None:
        """Starts a thread for the connection, and frees the slot if no thread can be started."""
        try:
            super().process_request(*request)
        except RuntimeError:
            self._slots.release()
            raise

    def process_request_thread(self, *request: Any) -> None:
        """Serves the connection and frees its slot."""
        try:
            super().process_request_thread(*request)
        finally:
            self._slots.release()

    def handle_error(self, *request: Any) -> None:
        """Prints a traceback, except for a client that hung up."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*request)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    timeout = _READ_TIMEOUT

    def do_GET(self) -> None:
        """Responds with a page."""
        match self.path.partition("?")[0]:
            case "/healthz":
                self._send_json(200, {"healthy": True, "version": importlib.metadata.version("contrail-multinet")})
            case "/readyz":
                reason = self.server.readiness()
                self._send_json(503 if reason else 200, {"ready": not reason, "reasons": [reason] if reason else []})
            case "/metrics":
                self._send(200, "text/plain; version=0.0.4", generate_latest(self.server.registry))
            case path:
                self._send_json(404, {"error": f"page {path}: not found"})

    def log_message(self, *_: object) -> None:
        """Logs no requests: probes and scrapes would fill the log."""

    def _send_json(self, status: int, document: object) -> None:
        self._send(status, "application/json", json.dumps(document).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
