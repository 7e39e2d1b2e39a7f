"""A thread that brings the kernel to the desired state whenever that changes, and looks for drift in between.

It asks the agent for the next state and waits there for a change. An audit, every 30 s and 11 s after a network became
stale, reads the kernel again. Without an agent the kernel keeps what it has, and the last known state is still audited.

The agent lets one follower of a node program. Another one is on standby: it forgets what it knew and changes nothing,
and its next request waits until the first one is gone.

Not promised: that drift is noticed before the next audit.
"""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
import traceback
from typing import Protocol

from cni_contrail.agent.http import Endpoint
from cni_contrail.datapath.node_reconciler import STALE_SECONDS, NodeOutcome, NodeReconciler
from cni_contrail.errors import PluginError
from cni_contrail.follower.agent import Changes, Report, StandbyError, next_desired_state, send_report
from cni_contrail.follower.desired_state import DesiredState

AUDIT_INTERVAL = 30.0  # seconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
_FIRST_WAIT = 2.0  # seconds after which the log says that there is no state, or that another follower has it
_OTHER_DATAPATH_PAUSE = 30.0
_STANDBY_PAUSE = 1.0  # between requests, each of which waits for its turn


class FollowerLog(Protocol):
    """Log of the process: that of the plugin, or a `logging.Logger`."""

    def info(self, message: str, /) -> None:
        """Logs an end of trouble."""

    def warning(self, message: str, /) -> None:
        """Logs trouble that ends by itself."""

    def error(self, message: str, /) -> None:
        """Logs what prevents traffic."""


class Follower:
    """Follows the agent at `endpoint`; `audit_interval` is in seconds. Start it once.

    `name` is unique among all followers of the agent, and begins with that of the program.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        reconciler: NodeReconciler,
        log: FollowerLog,
        *,
        program: str = "contrail-cnid",
        audit_interval: float = AUDIT_INTERVAL,
    ) -> None:
        # Processes in containers may have the same number.
        self.name = f"{program}-{os.getpid()}-{secrets.token_hex(4)}"
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

    def request_stop(self) -> None:
        """Ends the thread after the current round; the kernel keeps what it has."""
        self._stopped.set()

    def stop(self, timeout: float) -> None:
        """Ends the thread, and waits up to `timeout` seconds for that."""
        self.request_stop()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def follow_once(self) -> float:
        """Waits for the next state or audit, and programs it; returns the seconds to pause before the next round."""
        known = self._desired.version if self._desired is not None else ""
        try:
            desired = next_desired_state(self._endpoint, self.name, known, self._wait())
        except StandbyError as error:
            return self._stand_by(error.message)
        except PluginError as error:
            if self._stopped.is_set():  # an agent in this process has stopped, too
                return 0.0
            self._note(error.message)
            self._audit_last()
            return self._backoff()
        if desired is None:
            return _OTHER_DATAPATH_PAUSE
        self._desired = desired
        try:
            self._program(desired, is_audit=desired.version == known)
        except StandbyError as error:
            return self._stand_by(error.message)
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
        if self._desired is None and not self._trouble:
            return min(_FIRST_WAIT, self._audit_interval)
        return min(self._audit_interval, STALE_SECONDS + 1) if self._reconciler.has_stale else self._audit_interval

    def _audit_last(self) -> None:
        if self._desired is not None:
            self._log_problems(self._reconcile(self._desired))

    def _program(self, desired: DesiredState, *, is_audit: bool) -> None:
        started = time.monotonic()
        outcome = self._reconcile(desired)
        self._log_problems(outcome)
        made = sum(outcome.changes.values())
        if is_audit and made:
            self._log.warning(f"datapath: {made} changes repaired what another program had changed")
        self._unreported = self._unreported.plus(made, is_repair=is_audit)
        seconds = time.monotonic() - started
        send_report(self._endpoint, self.name, Report(desired.version, self._unreported, outcome, seconds))
        self._unreported = Changes(0, 0)

    def _stand_by(self, why: str) -> float:
        """Forgets the desired state, which another follower brings on from now; returns the pause."""
        self._desired = None
        self._unreported = Changes(0, 0)
        self._reconciler.forget()
        if why != self._trouble:
            self._log.info(f"datapath: on standby: {why}")
        self._trouble = why
        return _STANDBY_PAUSE

    def _reconcile(self, desired: DesiredState) -> NodeOutcome:
        return self._reconciler.reconcile(desired.networks, desired.routed, desired.underlay)

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
