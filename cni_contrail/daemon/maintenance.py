"""Background maintenance: resends pending notifications and sweeps orphaned attachments.

Both start with the daemon and repeat; resending backs off while the agent is unreachable.

Only the `state-dir` of the daemon's own settings is maintained. A directory that only network configurations name is
maintained by their calls, as with the entry point.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from cni_contrail.commands.node import NodeServices
from cni_contrail.commands.sweep import sweep_all
from cni_contrail.errors import PluginError
from cni_contrail.log import Log

_FIRST_PAUSE = 1.0  # seconds
_LONGEST_PAUSE = 60.0
_SWEEP_PAUSE = 15.0


class Maintenance:
    """Two threads. `node` returns the node with its current settings; `freed` receives the number of orphans detached.

    `log` is used when there is no node: its settings may be invalid for a while.
    """

    def __init__(self, node: Callable[[], NodeServices], log: Log, *, freed: Callable[[int], None]) -> None:
        self._node = node
        self._log = log
        self._freed = freed
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(work,), daemon=True) for work in (self.resend, self.sweep)
        ]

    def start(self) -> None:
        """Starts both threads."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float) -> None:
        """Stops after the current work, and waits up to `timeout` seconds per thread."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(timeout)

    def resend(self, pause: float) -> float:
        """Sends pending notifications; returns the seconds until the next try, doubled from `pause` on failure."""
        # Asked for at each run: the node-wide file may have changed.
        pending = self._node().pending
        before = pending.count()
        pending.send_all(self._node().agent)
        return min(pause * 2, _LONGEST_PAUSE) if before and pending.count() else _FIRST_PAUSE

    def sweep(self, _pause: float) -> float:
        """Detaches orphaned attachments; returns the seconds until the next sweep."""
        self._freed(sweep_all(self._node()))
        return _SWEEP_PAUSE

    def _repeat(self, work: Callable[[float], float]) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                pause = work(pause)
            except PluginError as error:
                self._log.warning(f"maintenance postponed: {error.message}")
                pause = _LONGEST_PAUSE
            if self._stopped.wait(pause * random.uniform(0.75, 1.25)):  # noqa: S311 - spreads load, keeps no secret
                return
