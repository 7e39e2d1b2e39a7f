"""Brings the kernel to the desired state whenever that changes, and repairs drift in between.

One thread asks the agent for the next state and waits there for a change. An audit, every 30 s and 11 s after a network
became stale, reads the kernel again. Another thread repairs what the kernel notifies of (`repairs`). Without an agent
the kernel keeps what it has, and the last known state is still repaired.

The agent lets one follower of a node program. Another one is on standby: it forgets what it knew and changes nothing,
and its next request waits until the first one is gone.

Not promised: that each change is notified. What is not is found by the next audit.
"""

from __future__ import annotations

import math
import os
import random
import secrets
import threading
import time
import traceback

from cni_contrail.agent.http import Endpoint
from cni_contrail.datapath.node_reconciler import STALE_SECONDS, NodeReconciler
from cni_contrail.errors import PluginError, UnreachableError
from cni_contrail.follower.agent import StandbyError, next_desired_state
from cni_contrail.follower.kernel_program import FollowerLog, KernelProgram
from cni_contrail.follower.rehearsal import Rehearse, nothing_is_missing
from cni_contrail.follower.repairs import Repairs
from cni_contrail.link.errors import LinkError

AUDIT_INTERVAL = 30.0  # seconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
_AWAY_PAUSE = 0.2  # pods wait for what a new agent knows only when it is asked, and its socket is local
_FIRST_WAIT = 2.0  # seconds after which the log says that there is no state, or that another follower has it
_OTHER_DATAPATH_PAUSE = 30.0
_STANDBY_PAUSE = 1.0  # between requests, each of which waits for its turn


class Follower:
    """Follows the agent at `endpoint`; `audit_interval` is in seconds. Start it once.

    `name` is unique among all followers of the agent, and begins with that of the program. `rehearse`,
    `daemon_version`: `KernelProgram`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        reconciler: NodeReconciler,
        log: FollowerLog,
        *,
        program: str = "contrail-cnid",
        rehearse: Rehearse = nothing_is_missing,
        daemon_version: str | None = None,
        audit_interval: float = AUDIT_INTERVAL,
    ) -> None:
        # Processes in containers may have the same number.
        self.name = f"{program}-{os.getpid()}-{secrets.token_hex(4)}"
        self._endpoint = endpoint
        self._program = KernelProgram(
            endpoint, self.name, reconciler, log, rehearse=rehearse, daemon_version=daemon_version
        )
        self._log = log
        self._audit_interval = audit_interval
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="datapath", daemon=True)
        self._watches = False  # unless it has threads
        self._repairs: Repairs | None = None
        self._lock = threading.Lock()  # of `_repairs`, which stays None once `_stopped` is set
        self._pause = _FIRST_PAUSE
        self._next_audit = -math.inf  # on the monotonic clock
        self._trouble = ""

    def start(self) -> None:
        """Starts the threads, in the network namespace of the calling one."""
        self._watches = True
        self._thread.start()

    def request_stop(self) -> None:
        """Ends the threads after the current round; the kernel keeps what it has."""
        with self._lock:
            self._stopped.set()
            if self._repairs is not None:
                self._repairs.request_stop()

    def stop(self, timeout: float) -> None:
        """Ends the threads, and waits up to `timeout` seconds for each."""
        self.request_stop()
        self._stop_repairs(timeout)
        if self._thread.is_alive():
            self._thread.join(timeout)

    def follow_once(self) -> float:
        """Waits for the next state or audit, and programs it; returns the seconds to pause before the next round."""
        try:
            # An agent that was restarted knows no report, and pods wait for one: do not wait for another state.
            known = "" if self._trouble else self._program.version
            desired = next_desired_state(self._endpoint, self.name, known, self._wait())
        except StandbyError as error:
            return self._stand_by(error.message)
        except UnreachableError as error:
            self._without_agent(error)
            return _AWAY_PAUSE
        except PluginError as error:
            self._without_agent(error)
            return self._backoff()
        if desired is None:
            self._stop_repairs(_OTHER_DATAPATH_PAUSE)
            return _OTHER_DATAPATH_PAUSE
        self._start_repairs()
        self._program.program(desired)
        try:
            self._program.report()
        except StandbyError as error:
            return self._stand_by(error.message)
        except PluginError as error:  # the report was not accepted: the agent says what is missing
            self._note(error.message)
            return self._backoff()
        self._note("")
        self._pause, self._next_audit = _FIRST_PAUSE, -math.inf
        return 0.0

    def _run(self) -> None:
        pause = 0.0
        while not self._stopped.wait(pause * random.uniform(0.75, 1.25)):  # noqa: S311 - spreads load, keeps no secret
            try:
                pause = self.follow_once()
            except Exception:  # noqa: BLE001 - a thread that ends would leave the kernel to itself, unnoticed
                self._log.error(f"datapath: unexpected error: {traceback.format_exc()}")
                pause = self._backoff()

    def _start_repairs(self) -> None:
        """Watches the kernel, before it is programmed for the first time."""
        if not self._watches or self._repairs is not None or self._stopped.is_set():
            return
        try:
            repairs = Repairs(self._program, self._log)
        except LinkError as error:
            self._watches = False
            self._log.warning(f"datapath: drift is repaired only every {self._audit_interval:g} s: {error}")
            return
        repairs.start()
        with self._lock:
            is_late = self._stopped.is_set()
            self._repairs = None if is_late else repairs
        if is_late:
            repairs.stop(_STANDBY_PAUSE)

    def _stop_repairs(self, timeout: float) -> None:
        with self._lock:
            repairs, self._repairs = self._repairs, None
        if repairs is not None:
            repairs.stop(timeout)

    def _without_agent(self, error: PluginError) -> None:
        """Repairs the last known state, less often than the agent is asked: with many endpoints that takes long."""
        if self._stopped.is_set():  # an agent in this process has stopped, too
            return
        self._note(error.message)
        if time.monotonic() >= self._next_audit:
            self._program.audit()
            self._next_audit = time.monotonic() + min(self._audit_interval, _LONGEST_PAUSE)

    def _wait(self) -> float:
        if not self._program.version and not self._trouble:
            return min(_FIRST_WAIT, self._audit_interval)
        return min(self._audit_interval, STALE_SECONDS + 1) if self._program.has_stale else self._audit_interval

    def _stand_by(self, why: str) -> float:
        """Forgets the desired state, which another follower brings on from now; returns the pause."""
        self._stop_repairs(_STANDBY_PAUSE)
        self._program.forget()
        if why != self._trouble:
            self._log.info(f"datapath: on standby: {why}")
        self._trouble = why
        return _STANDBY_PAUSE

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
