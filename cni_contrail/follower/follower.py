"""A thread that brings the kernel to the desired state whenever that changes, and looks for drift in between.

It asks the agent for the next state and waits there for a change. An audit, every 30 s and 11 s after a network became
stale, reads the kernel again. Without an agent the kernel keeps what it has, and the last known state is still audited.

Not promised: that drift is noticed before the next audit.
"""

from __future__ import annotations

import random
import threading
import time
import traceback
from typing import Protocol

from cni_contrail.agent.http import Endpoint
from cni_contrail.datapath.node_reconciler import STALE_SECONDS, NodeOutcome, NodeReconciler
from cni_contrail.errors import PluginError
from cni_contrail.follower.agent import Changes, Report, next_desired_state, send_report
from cni_contrail.follower.desired_state import DesiredState

AUDIT_INTERVAL = 30.0  # seconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
_OTHER_DATAPATH_PAUSE = 30.0


class FollowerLog(Protocol):
    """Log of the process: that of the plugin, or a `logging.Logger`."""

    def info(self, message: str, /) -> None:
        """Logs an end of trouble."""

    def warning(self, message: str, /) -> None:
        """Logs trouble that ends by itself."""

    def error(self, message: str, /) -> None:
        """Logs what prevents traffic."""


class Follower:
    """Follows the agent at `endpoint`; `audit_interval` is in seconds. Start it once."""

    def __init__(
        self,
        endpoint: Endpoint,
        reconciler: NodeReconciler,
        log: FollowerLog,
        *,
        audit_interval: float = AUDIT_INTERVAL,
    ) -> None:
        self._endpoint = endpoint
        self._reconciler = reconciler
        self._log = log
        self._audit_interval = audit_interval
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="datapath", daemon=True)
        self._desired: DesiredState | None = None
        self._problems: dict[int, str] = {}
        self._pause = _FIRST_PAUSE
        self._trouble = ""
        self._unreported = Changes(0, 0)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Stops after the current round, and waits up to `timeout` seconds for that; the kernel keeps what it has."""
        self._stopped.set()
        self._thread.join(timeout)

    def follow_once(self) -> float:
        """Waits for the next state or audit, and programs it; returns the seconds to pause before the next round."""
        known = self._desired.version if self._desired is not None else ""
        try:
            desired = next_desired_state(self._endpoint, known, self._wait())
        except PluginError as error:
            self._note(error.message)
            self._audit_last()
            return self._backoff()
        if desired is None:
            return _OTHER_DATAPATH_PAUSE
        self._desired = desired
        try:
            self._program(desired, is_audit=desired.version == known)
        except PluginError as error:  # the report was not accepted: the agent says what is missing
            self._note(error.message)
            return self._backoff()
        self._note("")
        self._pause = _FIRST_PAUSE
        return 0.0

    def _run(self) -> None:
        pause = 0.0
        while not self._stopped.wait(pause * random.uniform(0.75, 1.25)):  # noqa: S311 - spreads load, keeps no secret
            try:
                pause = self.follow_once()
            except Exception:  # noqa: BLE001 - a thread that ends would leave the kernel to itself, unnoticed
                self._log.error(f"datapath: unexpected error: {traceback.format_exc()}")
                pause = self._backoff()

    def _wait(self) -> float:
        return min(self._audit_interval, STALE_SECONDS + 1) if self._reconciler.has_stale else self._audit_interval

    def _audit_last(self) -> None:
        if self._desired is not None:
            self._log_problems(self._reconciler.reconcile(self._desired.networks, self._desired.routed))

    def _program(self, desired: DesiredState, *, is_audit: bool) -> None:
        started = time.monotonic()
        outcome = self._reconciler.reconcile(desired.networks, desired.routed)
        self._log_problems(outcome)
        made = sum(outcome.changes.values())
        if is_audit and made:
            self._log.warning(f"datapath: {made} changes repaired what another program had changed")
        self._unreported = self._unreported.plus(made, is_repair=is_audit)
        seconds = time.monotonic() - started
        send_report(self._endpoint, Report(desired.version, self._unreported, outcome, seconds))
        self._unreported = Changes(0, 0)

    def _log_problems(self, outcome: NodeOutcome) -> None:
        for vni, problem in outcome.problems.items():
            if self._problems.get(vni) != problem:
                self._log.error(f"datapath: {f'network {vni}' if vni else 'index 0'}: {problem}")
        self._problems = dict(outcome.problems)

    def _note(self, trouble: str) -> None:
        """Logs a trouble with the agent once, and its end."""
        if trouble and trouble != self._trouble:
            self._log.warning(f"datapath: the kernel keeps what it has: {trouble}")
        elif self._trouble and not trouble:
            self._log.info("datapath: following the agent again")
        self._trouble = trouble

    def _backoff(self) -> float:
        pause = self._pause
        self._pause = min(pause * 2, _LONGEST_PAUSE)
        return pause
