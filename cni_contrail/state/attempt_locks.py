"""Whether the ADD that wrote a record still runs: an ADD that waits for the agent holds no lock of its container.

Each ADD locks one byte of the state directory, at an offset that is its own, and the kernel frees it when the process
ends, however it ends. So a record that was left behind is told from one in the making at once, whatever its age, by
callers in any PID namespace, and nothing is to be cleaned up. Byte locks of open file descriptions (fcntl_locking(2))
serve several threads of one process like several processes, and are no matter to the `flock` of `lock`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator

from cni_contrail.errors import Code, PluginError
from cni_contrail.state.files import create_private_directory

_LOCK = struct.Struct("@hhqqi4x")  # struct flock: type, whence, start, length, process


@contextlib.contextmanager
def attempt_lock(state_dir: str, attempt: str) -> Iterator[None]:
    """Marks the attempt (16 hexadecimal digits) as one that runs; raises `PluginError` with code 5."""
    try:
        descriptor = _open(state_dir)
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{state_dir} cannot be made: {error.strerror}") from error
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _byte(fcntl.F_RDLCK, attempt))
        yield
    finally:
        os.close(descriptor)


def _open(state_dir: str) -> int:
    try:
        return os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        create_private_directory(state_dir)
        return os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY)


def is_attempt_running(state_dir: str, attempt: str) -> bool:
    """Whether the attempt still runs."""
    descriptor = os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _byte(fcntl.F_WRLCK, attempt))
    finally:
        os.close(descriptor)
    return bool(_LOCK.unpack(found)[0] != fcntl.F_UNLCK)


def _byte(kind: int, attempt: str) -> bytes:
    """62 bits of the attempt are the offset."""
    return _LOCK.pack(kind, os.SEEK_SET, int(attempt, 16) >> 2, 1, 0)
