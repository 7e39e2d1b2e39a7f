"""Attempt locks: tell whether the ADD that wrote a record still runs. A waiting ADD holds no container lock.

Each ADD locks one byte of the state directory, at an offset of its own, and the kernel releases it when the process
ends, however it ends. So callers in any PID namespace can distinguish an abandoned record from one in progress, at any
age, and nothing needs cleanup. Locks of open file descriptions (fcntl_locking(2)) also work
between threads of one process, and are independent of the `flock` in `lock`.
"""

from __future__ import annotations

import fcntl
import os
import struct

from cni_contrail.errors import Code, PluginError
from cni_contrail.state.files import create_private_directory

_LOCK = struct.Struct("@hhqqi4x")  # struct flock: type, whence, start, length, PID


def lock_attempt(state_dir: str, attempt: str) -> int:
    """Marks the attempt (16 hexadecimal digits) as running until the returned descriptor is closed.

    Raises `PluginError` with code 5.
    """
    try:
        descriptor = _open(state_dir)
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{state_dir}: cannot create: {error.strerror}") from error
    # A read lock, as the descriptor of a directory is read-only; `is_attempt_running` asks for a write lock.
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _byte(fcntl.F_RDLCK, attempt))
    return descriptor


def _open(state_dir: str) -> int:
    try:
        return os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        create_private_directory(state_dir)
        return os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY)


def is_attempt_running(state_dir: str, attempt: str) -> bool:
    """Returns whether the attempt still runs."""
    descriptor = os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _byte(fcntl.F_WRLCK, attempt))
    finally:
        os.close(descriptor)
    return bool(_LOCK.unpack(found)[0] != fcntl.F_UNLCK)


def _byte(kind: int, attempt: str) -> bytes:
    """Returns the lock of the attempt's byte: 62 bits of the attempt are the offset, which must not be negative."""
    return _LOCK.pack(kind, os.SEEK_SET, int(attempt, 16) >> 2, 1, 0)
