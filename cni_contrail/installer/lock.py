"""Lock of a node: one process at a time installs or uninstalls there. The kernel releases it when the process dies."""

import contextlib
import fcntl
import os
from collections.abc import Iterator

FILE = "installer.lock"


@contextlib.contextmanager
def installer_lock(run_dir: str) -> Iterator[bool]:
    """Yields whether the lock in `run_dir` is held, without waiting for another process. Raises OSError."""
    descriptor = os.open(f"{run_dir}/{FILE}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
