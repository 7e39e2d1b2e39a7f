"""One call at a time per container: a lock on the container's directory, which the kernel frees when its owner dies."""

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
    """Holds the lock of a directory, which is made if it is not there, and removed at the end if it is empty then.

    Raises `TryAgainError` if another call holds it for longer than `patience` (seconds), `PluginError` with code 5 if
    the directory cannot be made.
    """
    descriptor = _locked(path, timeout)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # not empty
            os.rmdir(path)
        os.close(descriptor)


def _locked(path: str, timeout: float) -> int:
    for _ in Deadline(timeout).tries(_FIRST_PAUSE, _LONGEST_PAUSE):
        descriptor = _try(path)
        if descriptor is not None:
            return descriptor
    raise TryAgainError(f"another call has held {path} for {timeout:g} s")


def _try(path: str) -> int | None:
    """The descriptor that holds the lock; None if another holds it, or removed the directory just now."""
    descriptor = _open(path)
    if descriptor is None:
        return None
    is_held = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_held = os.path.samestat(os.fstat(descriptor), os.stat(path))
    except (BlockingIOError, FileNotFoundError):
        return None
    finally:
        if not is_held:
            os.close(descriptor)
    return descriptor if is_held else None


def _open(path: str) -> int | None:
    """The descriptor of the directory; None if another call removed it just now."""
    try:
        create_private_directory(path)
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{path} cannot be made: {error.strerror}") from error
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{path} cannot be opened: {error.strerror}") from error
