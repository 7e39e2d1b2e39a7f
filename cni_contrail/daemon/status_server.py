"""HTTP server for `/healthz`, `/readyz`, `/metrics` and `/adds`, if the configuration sets `metrics-listen`.

`/adds?namespace=NAMESPACE&pod=NAME` are the last ADDs of a pod, `/adds` those of all. It names pods, so it is for this
node's processes only.

The liveness probe depends on it, so slow clients must not block it: a request head has one deadline for all its bytes,
and a new connection takes the place of the oldest one when all are in use. No page waits for anything but its client,
except that one request at a time checks the readiness.
"""

from __future__ import annotations

import contextlib
import http.server
import importlib.metadata
import io
import ipaddress
import json
import socket
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from cni_contrail.agent.connections import time_left
from cni_contrail.daemon.accept_errors import AcceptErrors
from cni_contrail.daemon.connection_slots import ConnectionSlots
from cni_contrail.daemon.errors import SocketError
from cni_contrail.daemon.readiness_cache import ReadinessCache, ReadinessCheck
from cni_contrail.daemon.recent_adds import RecentAdds
from cni_contrail.deadline import Deadline
from cni_contrail.log import Log

_HEAD_TIMEOUT = 5.0  # seconds for a whole request head
_SEND_TIMEOUT = 5.0  # seconds for a whole response
_MAX_HEAD = 16 * 1024  # bytes
_READ_SIZE = 4096
_MAX_CONNECTIONS = 16  # descriptors and threads are reserved for CNI calls
_MAX_PER_PEER = 8


@contextlib.contextmanager
def status_server(
    address: tuple[str, int], readiness: ReadinessCheck, registry: CollectorRegistry, adds: RecentAdds, log: Log
) -> Iterator[None]:
    """Serves the pages while the body runs; raises `SocketError` if it cannot listen on the address."""
    try:
        server = _Server(address, readiness, registry, adds, log)
    except OSError as error:
        raise SocketError(f"metrics-listen {address[0]}:{address[1]}: {error.strerror or error}") from error
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.stop()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    block_on_close = False

    def __init__(
        self,
        address: tuple[str, int],
        readiness: ReadinessCheck,
        registry: CollectorRegistry,
        adds: RecentAdds,
        log: Log,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.readiness = ReadinessCache(readiness)
        self.registry = registry
        self.adds = adds
        self._slots = ConnectionSlots(_MAX_CONNECTIONS, _MAX_PER_PEER)
        self._accept_errors = AcceptErrors("metrics-listen", log)
        self._stopped = threading.Event()
        super().__init__(address, _Handler)

    def stop(self) -> None:
        """Stops accepting, and closes the listener."""
        self._stopped.set()
        self.shutdown()
        self.server_close()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accepts a connection; after a failure the base class tries again."""
        try:
            return super().get_request()
        except OSError as error:
            self._accept_errors.report(error)
            self._accept_errors.pause(self._stopped)
            raise

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Returns False, which closes the connection, if there is no slot for it."""
        return self._slots.take(request, client_address[0])

    def shutdown_request(self, request: Any) -> None:
        """Closes the connection and frees its slot."""
        super().shutdown_request(request)
        self._slots.free(request)

    def handle_error(self, *request: Any) -> None:
        """Prints a traceback, except for a client that hung up or was too slow."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(*request)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    timeout = _SEND_TIMEOUT

    def setup(self) -> None:
        """Reads the whole head first: the base class has a timeout for each read only, which a slow client resets."""
        super().setup()
        self.rfile = io.BytesIO(_read_head(self.connection))
        self.connection.settimeout(_SEND_TIMEOUT)

    def do_GET(self) -> None:
        """Responds with a page."""
        path, _, query = self.path.partition("?")
        match path:
            case "/healthz":
                self._send_json(200, {"healthy": True, "version": importlib.metadata.version("contrail-multinet")})
            case "/readyz":
                reason = self.server.readiness.reason()
                self._send_json(503 if reason else 200, {"ready": not reason, "reasons": [reason] if reason else []})
            case "/metrics":
                self._send(200, "text/plain; version=0.0.4", generate_latest(self.server.registry))
            case "/adds":
                self._send_adds(query)
            case _:
                self._send_json(404, {"error": f"page {path}: not found"})

    def log_message(self, *_: object) -> None:
        """Logs no requests: probes and scrapes would fill the log."""

    def _send_adds(self, query: str) -> None:
        if not _is_loopback(self.client_address[0]):
            self._send_json(403, {"error": "/adds: only for processes of this node"})
            return
        given = urllib.parse.parse_qs(query)
        if given and given.keys() != {"namespace", "pod"}:
            self._send_json(400, {"error": "/adds: takes the query keys namespace and pod, or none"})
            return
        adds = self.server.adds.of_pod(given["namespace"][0], given["pod"][0]) if given else self.server.adds.all()
        items = [each._asdict() | {"phases": [phase._asdict() for phase in each.phases]} for each in adds]
        self._send_json(200, {"items": items})

    def _send_json(self, status: int, document: object) -> None:
        self._send(status, "application/json", json.dumps(document).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _is_loopback(text: str) -> bool:
    address = ipaddress.ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _read_head(connection: socket.socket) -> bytes:
    """Returns the request up to its empty line; raises `TimeoutError`, or `ConnectionError` if there is none."""
    deadline = Deadline(_HEAD_TIMEOUT)
    head = b""
    while b"\r\n\r\n" not in head:
        connection.settimeout(time_left(deadline))
        part = connection.recv(_READ_SIZE)
        if not part or len(head) > _MAX_HEAD:
            raise ConnectionAbortedError("no request")
        head += part
    return head
