"""HTTP server process of this project, started, watched and stopped as by a supervisor."""

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

DEADLINE = 30.0


class ServedProcess:
    """Runs `command`, which serves at `listen` (`HOST:PORT`), and appends its standard error to `log`.

    `environment` replaces the environment of the tests.
    """

    def __init__(
        self, command: Sequence[str], *, listen: str, log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.command = command
        self.listen = listen
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self._environment = environment

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Starts it and waits until it is ready."""
        self.launch()
        self.wait_until_ready()

    def launch(self, *environment: str) -> None:
        """Starts it without waiting; `environment` is a command that runs another one."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*environment, *self.command], stderr=log, env=self._environment)

    def wait_until_ready(self) -> None:
        """Waits until `/readyz` has status 200."""
        self.wait_until(lambda: self.get("/readyz") is not None, what="ready")

    def kill(self) -> None:
        """Sends SIGKILL and waits for its end."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> int:
        """Sends SIGTERM and returns its exit status."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(10)

    def ended(self) -> int:
        """Waits until it exits and returns its exit status."""
        assert self.process is not None
        return self.process.wait(DEADLINE)

    def get(self, path: str) -> Any:
        """The JSON of a path; None without a response or with a status other than 200."""
        status, answer = self.ask(path)
        return answer if status == 200 else None

    def ask(self, path: str) -> tuple[int, Any]:
        """Status and JSON of a path; (0, None) without a response."""
        try:
            with urllib.request.urlopen(f"http://{self.listen}{path}", timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)
        except (urllib.error.URLError, ConnectionError):
            return 0, None

    def wait_until(self, holds: Callable[[], bool], *, what: str) -> None:
        """Polls until the condition holds; fails with the log after DEADLINE or if the process ends."""
        assert self.process is not None
        give_up = time.monotonic() + DEADLINE
        while not holds():
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.log.read_text()}"
            assert time.monotonic() < give_up, f"not {what} within {DEADLINE} s: {self.log.read_text()[-3000:]}"
            time.sleep(0.02)  # noqa: TID251 - another process is polled
