"""Locks of directories and files: a `flock`, which the kernel releases when the process dies."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from types import TracebackType

from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, PluginError, TryAgainError
from cni_contrail.quoting import cut
from cni_contrail.state.files import create_private_directory, remove_partial_files

_FIRST_PAUSE = 0.005  # seconds
_LONGEST_PAUSE = 0.1


class LockedDirectory:
    """Holds the lock of a directory, which is created if missing, and removed at the end if it is empty.

    Partial files that killed calls left in it are removed first. Raises `TryAgainError` if another call holds the lock
    for longer than `timeout` (seconds), `PluginError` with code 5 if the directory cannot be created.
    """

    __slots__ = ("_descriptor", "_path", "_timeout")

    def __init__(self, path: str, timeout: float) -> None:
        self._path = path
        self._timeout = timeout

    def __enter__(self) -> None:
        self._descriptor, is_new = _locked(self._path, self._timeout)
        if not is_new:
            self._remove_partial_files()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def _remove_partial_files(self) -> None:
        try:
            remove_partial_files(self._path)
        except BaseException:
            self._release()
            raise

    def _release(self) -> None:
        with contextlib.suppress(OSError):  # not empty
            os.rmdir(self._path)
        os.close(self._descriptor)


@contextlib.contextmanager
def locked_file(path: str, timeout: float) -> Iterator[bool]:
    """Holds the lock of a file, which its holder may remove; yields False if the file does not exist.

    Raises `TryAgainError` as `LockedDirectory`, `PluginError` with code 5 if the file cannot be opened.
    """
    for _ in Deadline(timeout).attempts(_FIRST_PAUSE, _LONGEST_PAUSE):
        descriptor = _open(path, os.O_RDONLY)
        if descriptor is None:
            yield False
            return
        if _lock(descriptor, path):
            try:
                yield True
            finally:
                os.close(descriptor)
            return
    raise TryAgainError(f"{cut(path)}: locked by another call for {timeout:g} s")


def _locked(path: str, timeout: float) -> tuple[int, bool]:
    for _ in Deadline(timeout).attempts(_FIRST_PAUSE, _LONGEST_PAUSE):
        is_new = _create(path)
        descriptor = _open(path, os.O_RDONLY | os.O_DIRECTORY)
        if descriptor is not None and _lock(descriptor, path):
            return descriptor, is_new
    raise TryAgainError(f"{cut(path)}: locked by another call for {timeout:g} s")


def _create(path: str) -> bool:
    """Creates the directory; returns False if it exists."""
    try:
        return create_private_directory(path)
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{cut(path)}: cannot create: {error.strerror}") from error


def _lock(descriptor: int, path: str) -> bool:
    """Locks what the path names, without waiting; returns False and closes the descriptor if that is not possible."""
    is_held = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The path may name something new by now: holders remove a file, or an empty directory.
        is_held = os.path.samestat(os.fstat(descriptor), os.stat(path))
    except (BlockingIOError, FileNotFoundError):
        return False
    finally:
        if not is_held:
            os.close(descriptor)
    return is_held


def _open(path: str, flags: int) -> int | None:
    """Returns the descriptor; None if there is nothing, or another call has just removed it."""
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{cut(path)}: cannot open: {error.strerror}") from error
