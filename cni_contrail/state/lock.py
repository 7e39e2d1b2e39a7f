"""Lock of a container: a `flock` on its directory, which the kernel releases when the process dies."""

import contextlib
import fcntl
import os
from collections.abc import Iterator

from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, PluginError, TryAgainError
from cni_contrail.state.files import create_private_directory

_FIRST_PAUSE = 0.005  # seconds
_LONGEST_PAUSE = 0.1


@contextlib.contextmanager
def locked_directory(path: str, timeout: float) -> Iterator[None]:
    """Holds the lock of a directory, which is created if missing, and removed at the end if it is empty.

    Raises `TryAgainError` if another call holds the lock for longer than `timeout` (seconds), `PluginError` with code 5
    if the directory cannot be created.
    """
    descriptor = _locked(path, timeout)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # not empty
            os.rmdir(path)
        os.close(descriptor)


def _locked(path: str, timeout: float) -> int:
    for _ in Deadline(timeout).attempts(_FIRST_PAUSE, _LONGEST_PAUSE):
        descriptor = _try(path)
        if descriptor is not None:
            return descriptor
    raise TryAgainError(f"{path}: locked by another call for {timeout:g} s")


def _try(path: str) -> int | None:
    """Returns the descriptor that holds the lock; None if another call holds it or has just removed the directory."""
    descriptor = _open(path)
    if descriptor is None:
        return None
    is_held = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The path may name a new directory by now: the previous holder removes an empty one.
        is_held = os.path.samestat(os.fstat(descriptor), os.stat(path))
    except (BlockingIOError, FileNotFoundError):
        return None
    finally:
        if not is_held:
            os.close(descriptor)
    return descriptor if is_held else None


def _open(path: str) -> int | None:
    """Returns the descriptor of the directory; None if another call has just removed it."""
    try:
        create_private_directory(path)
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{path}: cannot create: {error.strerror}") from error
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{path}: cannot open: {error.strerror}") from error
