"""A server that is started, waited for and killed, and does not outlive the tests."""

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_WITH_US = ("setpriv", "--pdeathsig", "KILL")
_START_TIMEOUT = 60.0
_STOP_TIMEOUT = 30.0


class ServerProcess:
    """Runs `command`; `is_ready` tells whether it serves. What it says is appended to `log`.

    It dies with the thread that starts it, which therefore is the one that lasts as long as the tests.
    """

    def __init__(self, command: Sequence[str], log: Path, *, is_ready: Callable[[], bool]) -> None:
        self._command = (*_WITH_US, *command)
        self._log = log
        self._is_ready = is_ready
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of the process, which runs."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Starts it and returns when it is ready."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Starts it and returns at once."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def wait_until_ready(self) -> None:
        """Returns when it is ready after it was launched; this may be in any thread."""
        assert self._process is not None
        give_up = time.monotonic() + _START_TIMEOUT
        while not self._is_ready():
            assert self._process.poll() is None, f"ended: {self._last_words()}"
            assert time.monotonic() < give_up, f"not ready within {_START_TIMEOUT:g} s: {self._last_words()}"
            time.sleep(0.05)  # noqa: TID251 - another process is watched, which tells no event

    def kill(self) -> None:
        """Ends it as a power cut would; nothing if it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_STOP_TIMEOUT)
            self._process = None

    def stop(self) -> None:
        """Ends it as a supervisor would."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(_STOP_TIMEOUT)
        self._process = None

    def _last_words(self) -> str:
        return self._log.read_text()[-3000:]
