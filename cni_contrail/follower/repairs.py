"""A thread that repairs what other programs change as soon as the kernel notifies of it.

It waits a moment after a notification: those of one cause come together, and a change that belongs to an ADD or DEL is
usually over by then, or seen by the round that the changed desired state causes.
"""

from __future__ import annotations

import contextlib
import os
import threading
import traceback

from cni_contrail.drift.drift_watch import DriftWatch
from cni_contrail.errors import PluginError
from cni_contrail.follower.kernel_program import FollowerLog, KernelProgram

_WINDOW = 0.1  # seconds
_PAUSE_AFTER_ERROR = 5.0


class Repairs:
    """Repairs what `program` has programmed; `close` ends it. Raises KernelError if the kernel cannot be watched.

    The calling thread is in the node's network namespace.
    """

    def __init__(self, program: KernelProgram, log: FollowerLog) -> None:
        self._program = program
        self._log = log
        self._watch = DriftWatch()
        self._stopped = threading.Event()
        self._interruption = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._watch.interrupt_by(self._interruption)
        program.watch(self._watch)
        self._thread = threading.Thread(target=self._run, name="repairs", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def request_stop(self) -> None:
        """Ends the thread after the current repair."""
        self._stopped.set()
        os.eventfd_write(self._interruption, 1)

    def stop(self, timeout: float) -> None:
        """Ends the thread, and waits up to `timeout` seconds for that."""
        self.request_stop()
        self._thread.join(timeout)
        self._program.watch(None)
        if not self._thread.is_alive():
            self._watch.close()
            os.close(self._interruption)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._repair()
            except Exception:  # noqa: BLE001 - a thread that ends would leave repairs to the next audit, unnoticed
                self._log.error(f"datapath: unexpected error: {traceback.format_exc()}")
                self._stopped.wait(_PAUSE_AFTER_ERROR)

    def _repair(self) -> None:
        if self._watch.wait(self._program.next_repair()):
            self._stopped.wait(_WINDOW)
        if self._stopped.is_set() or not self._program.repair():
            return
        with contextlib.suppress(PluginError):  # it is part of the next report, and the follower logs what is wrong
            self._program.report()
