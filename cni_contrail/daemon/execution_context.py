"""What a call has from the daemon: the sandbox that came with it, its cancellation, and its share of the kernel."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from cni_contrail.daemon.configuration import DaemonConfiguration
from cni_contrail.daemon.metrics import MeasuredCall, Metrics
from cni_contrail.daemon.protocol import ShimConnection, ShimRequest
from cni_contrail.deadline import Interruption
from cni_contrail.errors import TryAgainError
from cni_contrail.execution_context import ExecutionContext
from cni_contrail.log import Log
from cni_contrail.plugin import CommandOutput
from cni_contrail.sandbox import Sandbox

_AT_ONCE = {"make": 4, "remove": 16}  # calls that have the kernel work; removing is mostly waiting for RCU
_NO_GATE: AbstractContextManager[object] = contextlib.nullcontext()


class DaemonContext(ExecutionContext):
    """Those of the daemon's own work, and what all calls share."""

    def __init__(self, configuration: DaemonConfiguration, *, json_lines: bool) -> None:
        self._settings = configuration.settings
        self._json_lines = json_lines
        self.metrics = Metrics()
        self._gates = {phase: threading.BoundedSemaphore(number) for phase, number in _AT_ONCE.items()}

    @property
    def node_settings(self) -> Mapping[str, Any]:
        """Those of the daemon's configuration."""
        return self._settings

    def make_log(self, path: str = "", level: str = "info") -> Log:
        """As the entry point's, as JSON if the daemon was told so."""
        return Log(path, level, json_lines=self._json_lines)

    def gate(self, phase: str) -> AbstractContextManager[object]:
        """Bounds how many calls are in a phase that is work for the kernel; others have no bound."""
        return self._gates.get(phase) or _NO_GATE


class CallContext(ExecutionContext):
    """Those of one call; `interruption` is there for an ADD."""

    def __init__(
        self,
        daemon: DaemonContext,
        connection: ShimConnection,
        received: ShimRequest,
        measured: MeasuredCall,
        interruption: Interruption,
    ) -> None:
        self._daemon = daemon
        self._connection = connection
        self._received = received
        self._measured = measured
        self._interruption = interruption

    @property
    def node_settings(self) -> Mapping[str, Any]:
        """Those of the daemon's configuration."""
        return self._daemon.node_settings

    @property
    def interruption(self) -> Interruption:
        """Comes when the runtime hangs up, a DEL comes, or the daemon stops."""
        return self._interruption

    def make_log(self, path: str = "", level: str = "info") -> Log:
        """The daemon's."""
        return self._daemon.make_log(path, level)

    def sandbox(self, path: str) -> Sandbox:
        """As the shim opened it, or failed to."""
        return Sandbox(path, self._connection.descriptor, self._received.failure)

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Waits for its turn if it is work for the kernel; the waiting is measured with it."""
        return self._measured.phase(name, self._daemon.gate(name))

    def deliver(self, result: str) -> None:
        """Sends the result to the shim; raises `TryAgainError` if it has gone."""
        if not self._connection.answer(0, CommandOutput(0, result).printed):
            raise TryAgainError("the runtime did not take the result")
