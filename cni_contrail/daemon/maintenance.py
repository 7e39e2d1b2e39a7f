"""What the daemon does without being called: sends the agent what it was not told, and frees what nobody deletes.

Both at the start and again and again. An agent that is away is asked less and less often.

It sees to the `state-dir` of the daemon's own settings: one that only network configurations name is looked after by
their calls, as with the entry point.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from cni_contrail.commands.node import Node
from cni_contrail.commands.sweep import sweep_all
from cni_contrail.errors import PluginError
from cni_contrail.log import Log

_FIRST_PAUSE = 1.0  # seconds
_LONGEST_PAUSE = 60.0
_SWEEP_PAUSE = 15.0


class Maintenance:
    """Two threads; `node` makes the node as it is set now, `freed` is told how many attachments were freed.

    `journal` is for when there is no node: its settings may be wrong for a while.
    """

    def __init__(self, node: Callable[[], Node], log: Log, *, freed: Callable[[int], None]) -> None:
        self._node = node
        self._log = log
        self._freed = freed
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(work,), daemon=True) for work in (self.replay, self.sweep)
        ]

    def start(self) -> None:
        """Begins."""
        for thread in self._threads:
            thread.start()

    def stop(self, patience: float) -> None:
        """Ends after what is being done, or after `patience` seconds."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(patience)

    def replay(self, pause: float) -> float:
        """Sends what is queued; returns how long to wait until it is tried again, from how long that was."""
        pending = self._node().pending
        before = pending.count()
        pending.send_all(self._node().agent)
        return min(pause * 2, _LONGEST_PAUSE) if before and pending.count() else _FIRST_PAUSE

    def sweep(self, _pause: float) -> float:
        """Frees attachments whose sandbox is gone; returns how long to wait."""
        self._freed(sweep_all(self._node()))
        return _SWEEP_PAUSE

    def _repeat(self, work: Callable[[float], float]) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                pause = work(pause)
            except PluginError as error:
                self._log.warning(f"upkeep is put off: {error.message}")
                pause = _LONGEST_PAUSE
            if self._stopped.wait(pause * random.uniform(0.75, 1.25)):  # noqa: S311 - spreads load, keeps no secret
                return
