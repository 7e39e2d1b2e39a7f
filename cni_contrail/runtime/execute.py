"""Finds a plugin's executable and runs it once, within a deadline.

A plugin gets a session of its own: at the deadline it is killed with everything that it started (plugins run IPAM
plugins); libcni kills only the plugin and leaves those behind. A process that a plugin leaves running after a success
(a daemon) is not touched.
"""

import contextlib
import errno
import logging
import math
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cni_contrail.runtime.errors import PluginFailedError, PluginTimeoutError
from cni_contrail.runtime.interrupts import interrupts_held

log = logging.getLogger(__name__)

_BUSY_DELAYS = (0.1, 0.2, 0.4, 0.8, 0.8)
"""Seconds, plus jitter, before each retry of a plugin whose file is open for writing, since it is being installed."""

_KILL_GRACE = 5.0  # seconds for a killed plugin to end


class Completed(NamedTuple):
    """Outcome of a plugin; `status` is the negative signal number if a signal killed it."""

    status: int
    stdout: bytes
    stderr: bytes


def find_plugin(kind: str, directories: Sequence[str]) -> str:
    """Returns the absolute path of a plugin's executable, from the first directory that has it.

    Raises PluginFailedError.
    """
    for directory in directories:
        path = os.path.abspath(os.path.join(directory, kind))
        if os.path.isfile(path):
            return path
    raise PluginFailedError(f"plugin {kind}: not found in {', '.join(directories) or 'an empty list of directories'}")


def execute(path: str, configuration: bytes, environment: Mapping[str, str], *, deadline: float) -> Completed:
    """Runs a plugin and returns its outcome; `deadline` is on the clock of `time.monotonic`.

    Raises PluginFailedError if it cannot be started, PluginTimeoutError if it was killed at the deadline.
    """
    process: subprocess.Popen[bytes] | None = None
    try:
        # A signal between fork and assignment would leave the plugin running, unknown to us.
        with interrupts_held():
            process = _start(path, environment, deadline)
        stdout, stderr = process.communicate(configuration, timeout=max(0.0, deadline - time.monotonic()))
    except BaseException as error:  # also KeyboardInterrupt: no plugin may outlive its operation
        if process is not None:
            _kill(process)
        if isinstance(error, subprocess.TimeoutExpired):
            raise PluginTimeoutError(f"plugin {path}: timed out and was killed") from error
        raise
    if stderr:
        log.info("plugin %s wrote: %s", path, stderr.decode(errors="replace").rstrip())
    return Completed(process.returncode, stdout, stderr)


def _start(path: str, environment: Mapping[str, str], deadline: float) -> subprocess.Popen[bytes]:
    delays = iter(_BUSY_DELAYS)
    while True:
        try:
            return _spawn(path, environment)
        except OSError as error:
            delay = next(delays, math.inf) if error.errno == errno.ETXTBSY else math.inf
            if time.monotonic() + delay > deadline:
                raise PluginFailedError(f"plugin {path}: cannot be executed: {error.strerror}") from error
        jitter = random.uniform(0, delay / 2)  # noqa: S311 - spreads retries, guards nothing
        threading.Event().wait(delay + jitter)


def _spawn(path: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen([path], env=environment, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)


def _kill(process: subprocess.Popen[bytes]) -> None:
    # `start_new_session` made the plugin the leader of a group, which its children belong to.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # in an uninterruptible system call: it dies when that returns
        process.wait(timeout=_KILL_GRACE)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
