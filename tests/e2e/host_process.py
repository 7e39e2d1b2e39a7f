"""Long-running program of a host, which a test starts, kills and starts again."""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.e2e.host import Host, children
from tests.e2e.polling import wait_until

_END_TIMEOUT = 30.0


class HostProcess:
    """Runs `command` on the host; `is_ready` returns whether it serves. Its output is appended to `log`.

    It does not outlive the host.
    """

    def __init__(self, host: Host, command: Sequence[str], log: Path, *, is_ready: Callable[[], bool]) -> None:
        self._host = host
        self._command = command
        self._log = log
        self._is_ready = is_ready
        self._process: subprocess.Popen[str] | None = None

    def start(self, *, repeatedly: bool = False) -> None:
        """Starts it and waits until it is ready; `repeatedly`: if it ends before, again, as a service manager does."""
        self._launch()
        is_ready = self._is_ready_or_launched if repeatedly else self._is_ready_or_ended
        wait_until(is_ready, what=f"ready: {self._command[0]}", otherwise=self.output)

    def kill(self) -> None:
        """Sends SIGKILL and waits for its end. Idempotent."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Sends SIGTERM and waits for its end."""
        self._end(signal.SIGTERM)

    def output(self) -> str:
        """All that it has written."""
        return self._log.read_text()

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        for pid in children(self._process.pid):  # `nsenter` waits for it
            os.kill(pid, number)
        self._process.wait(_END_TIMEOUT)
        self._process = None

    def _launch(self) -> None:
        with self._log.open("a") as log:
            self._process = self._host.start(*self._command, stdout=log, stderr=log)

    def _is_ready_or_launched(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            self._launch()
        return self._is_ready()

    def _is_ready_or_ended(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"ended: {self.output()[-3000:]}"
        return self._is_ready()
