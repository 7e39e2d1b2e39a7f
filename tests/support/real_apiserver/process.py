"""Server process that does not outlive the tests."""

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
_START_TIMEOUT = 60.0
_STOP_TIMEOUT = 30.0


class ServerProcess:
    """Runs `command`; `is_ready` returns whether it serves. Its output is appended to `log`.

    The kernel kills it when the thread that started it ends (PR_SET_PDEATHSIG is per thread), so start it in one that
    lasts as long as the tests.
    """

    def __init__(self, command: Sequence[str], log: Path, *, is_ready: Callable[[], bool]) -> None:
        self._command = (*_DIES_WITH_PARENT, *command)
        self._log = log
        self._is_ready = is_ready
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process ID of the running process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Starts it and waits until it is ready."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Starts it without waiting."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def wait_until_ready(self) -> None:
        """Waits until the launched process is ready. Any thread may call it."""
        assert self._process is not None
        give_up = time.monotonic() + _START_TIMEOUT
        while not self._is_ready():
            assert self._process.poll() is None, f"ended: {self._log_tail()}"
            assert time.monotonic() < give_up, f"not ready within {_START_TIMEOUT:g} s: {self._log_tail()}"
            time.sleep(0.05)  # noqa: TID251 - another process is polled

    def kill(self) -> None:
        """Sends SIGKILL and waits for its end. Idempotent."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_STOP_TIMEOUT)
            self._process = None

    def stop(self) -> None:
        """Sends SIGTERM and waits for its end."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(_STOP_TIMEOUT)
        self._process = None

    def _log_tail(self) -> str:
        return self._log.read_text()[-3000:]
