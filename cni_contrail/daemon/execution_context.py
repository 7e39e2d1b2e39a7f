"""Execution contexts in the daemon: the shim's sandbox, cancellation, and limits of concurrent kernel work."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from cni_contrail.daemon.configuration import DaemonConfiguration
from cni_contrail.daemon.errors import DaemonError
from cni_contrail.daemon.metrics import MeasuredCall, Metrics
from cni_contrail.daemon.protocol import ShimRequest
from cni_contrail.daemon.recent_adds import RecentAdds
from cni_contrail.daemon.shim_connection import ShimConnection
from cni_contrail.datapath.held_namespaces import HeldNamespaces
from cni_contrail.datapath.mount_propagation import is_slave
from cni_contrail.datapath.namespaces import Namespaces
from cni_contrail.deadline import Interruption
from cni_contrail.errors import TryAgainError
from cni_contrail.execution_context import ExecutionContext
from cni_contrail.link.errors import NetnsError
from cni_contrail.link.host_side import DIRECTORY
from cni_contrail.log import Log
from cni_contrail.plugin import CommandOutput
from cni_contrail.sandbox import Sandbox

# Concurrent calls per phase of kernel work, also of calls without a slot of their queue, such as ADDs that are rolled
# back. A call that has a place here must not wait for a slot: others with a slot may wait for its place.
_CONCURRENCY = {"remove": 16}
_NO_LIMIT: AbstractContextManager[object] = contextlib.nullcontext()


class DaemonContext(ExecutionContext):
    """Context of the daemon's own work, and what all calls share."""

    def __init__(self, configuration: DaemonConfiguration, *, json_lines: bool) -> None:
        self._settings = configuration.settings
        self._json_lines = json_lines
        self.metrics = Metrics()
        self.recent_adds = RecentAdds()
        self.maintained_state_dir = ""
        self._limits = {phase: threading.BoundedSemaphore(number) for phase, number in _CONCURRENCY.items()}
        self.held_namespaces = _held_namespaces()

    @property
    def node_settings(self) -> Mapping[str, Any]:
        """Settings of the daemon's configuration."""
        return self._settings

    def namespaces(self, directory: str) -> Namespaces:
        """The namespaces of networks below the directory, for the daemon's own work."""
        held = self.held_namespaces
        return held if held is not None and directory == held.directory else Namespaces(directory)

    def maintains(self, state_dir: str) -> bool:
        """Whether the daemon's maintenance covers the directory, and not only a network configuration names it."""
        return state_dir == self.maintained_state_dir

    def make_log(self, path: str = "", level: str = "info") -> Log:
        """Returns a log, in JSON lines if the daemon was started so."""
        return Log(path, level, json_lines=self._json_lines)

    def limit(self, phase: str) -> AbstractContextManager[object]:
        """Limits concurrent calls in a phase of kernel work; other phases have no limit."""
        return self._limits.get(phase) or _NO_LIMIT


def _held_namespaces() -> HeldNamespaces | None:
    """Returns the namespaces of networks if mounts of this process do not reach the host, otherwise None."""
    try:
        return HeldNamespaces(DIRECTORY) if is_slave(DIRECTORY) else None  # the shim pins in this directory only
    except NetnsError as error:
        raise DaemonError(str(error)) from error


class CallContext(ExecutionContext):
    """Context of one call; `interruption` is its cancellation if it is an ADD, a STATUS or a CHECK."""

    def __init__(
        self,
        daemon: DaemonContext,
        connection: ShimConnection,
        request: ShimRequest,
        measured: MeasuredCall,
        interruption: Interruption,
    ) -> None:
        self._daemon = daemon
        self._connection = connection
        self._request = request
        self._measured = measured
        self._interruption = interruption

    @property
    def node_settings(self) -> Mapping[str, Any]:
        """Settings of the daemon's configuration."""
        return self._daemon.node_settings

    @property
    def interruption(self) -> Interruption:
        """Fires when the runtime hangs up, DEL comes for the attachment, or the daemon stops."""
        return self._interruption

    def maintains(self, state_dir: str) -> bool:
        """Whether the daemon's maintenance covers the directory."""
        return self._daemon.maintains(state_dir)

    def namespaces(self, directory: str) -> Namespaces:
        """The namespaces of networks below the directory, pinned by the shim where the daemon cannot."""
        namespaces = self._daemon.namespaces(directory)
        if isinstance(namespaces, HeldNamespaces):
            return namespaces.pinned_by(self._connection.pin)
        return namespaces

    def make_log(self, path: str = "", level: str = "info") -> Log:
        """Returns a log in the daemon's format."""
        return self._daemon.make_log(path, level)

    def sandbox(self, path: str) -> Sandbox:
        """The sandbox as the shim opened it, or the errno with which it failed."""
        return Sandbox(path, self._connection.descriptor, self._request.netns_errno)

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Measures a phase and limits concurrent kernel work; the wait is measured with it."""
        return self._measured.phase(name, self._daemon.limit(name))

    def deliver(self, result: str) -> None:
        """Sends the result to the shim; raises `TryAgainError` if the shim is gone."""
        if not self._connection.respond(0, CommandOutput(0, result).encoded):
            raise TryAgainError("the runtime did not accept the result")
        self._measured.responded = time.perf_counter()
