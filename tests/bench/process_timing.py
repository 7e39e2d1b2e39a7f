"""Timing of processes started as a runtime starts a plugin: environment, configuration on stdin, result on stdout.

Uses `posix_spawn` with files, since `subprocess` with pipes would add 1.4 ms to each call.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles


@dataclass(frozen=True)
class Program:
    """A plugin's command line, and the files for its stdin, stdout and stderr."""

    command: Sequence[str]
    stdin: Path
    stdout: Path
    stderr: Path

    def run(self, environment: Mapping[str, str]) -> float:
        """Runs it once and returns its duration in seconds. Exits the benchmark if it fails."""
        started = time.perf_counter()
        pid = self.start(environment)
        _, status = os.waitpid(pid, 0)
        seconds = time.perf_counter() - started
        if status != 0:
            sys.exit(f"{self.command} failed: {self.stdout.read_text()}{self.stderr.read_text()}")
        return seconds

    def start(self, environment: Mapping[str, str]) -> int:
        """Starts it and returns its process ID."""
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, str(self.stdin), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(self.stdout), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, str(self.stderr), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        ]
        return os.posix_spawn(self.command[0], list(self.command), dict(environment), file_actions=actions)


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Returns median and 99th percentile, in milliseconds."""
    p99 = quantiles(seconds, n=100, method="inclusive")[98]
    return {"median_ms": round(median(seconds) * 1000, 2), "p99_ms": round(p99 * 1000, 2)}
