"""A process of ours that serves HTTP, as a supervisor starts, watches and ends it."""

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
    """Runs `command`, which serves at `listen` (`HOST:PORT`). What it says is appended to `log`.

    `environment` takes the place of the tests' own.
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
        """Starts it and returns once it is ready."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Starts it and returns at once."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stderr=log, env=self._environment)

    def wait_until_ready(self) -> None:
        """Returns once `/readyz` says so."""
        self.wait_until(lambda: self.get("/readyz") is not None, what="ready")

    def kill(self) -> None:
        """Ends it as a power cut would, leaving no time to clean up."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> int:
        """Ends it as a supervisor would and returns its exit status."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(10)

    def ended(self) -> int:
        """Waits until it ends by itself and returns its exit status."""
        assert self.process is not None
        return self.process.wait(DEADLINE)

    def get(self, path: str) -> Any:
        """The JSON of a page; None if it is not served, or not with status 200."""
        status, answer = self.ask(path)
        return answer if status == 200 else None

    def ask(self, path: str) -> tuple[int, Any]:
        """Status and JSON of a page; 0 and None if it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{self.listen}{path}", timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)
        except (urllib.error.URLError, ConnectionError):
            return 0, None

    def wait_until(self, holds: Callable[[], bool], *, what: str) -> None:
        """Returns once the condition holds; fails with the log after a deadline."""
        assert self.process is not None
        give_up = time.monotonic() + DEADLINE
        while not holds():
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.log.read_text()}"
            assert time.monotonic() < give_up, f"not {what} within {DEADLINE} s: {self.log.read_text()[-3000:]}"
            time.sleep(0.02)  # noqa: TID251 - another process is watched, which tells no event
