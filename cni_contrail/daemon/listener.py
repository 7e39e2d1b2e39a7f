"""The daemon's Unix socket: exclusive, in a directory of root's, and free of what an earlier daemon left."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
from collections.abc import Iterator

from cni_contrail.daemon.errors import SocketError
from cni_contrail.state.files import create_private_directory

_ROOT = 0
_WRITABLE_BY_OTHERS = 0o022


@contextlib.contextmanager
def bound_socket(path: str) -> Iterator[socket.socket]:
    """Binds a socket to the path and unlinks it at the end; the caller listens. Raises `SocketError`."""
    with contextlib.ExitStack() as held:
        try:
            held.callback(os.close, _lock(path))
            listener = held.enter_context(_bind(path))
        except OSError as error:
            raise SocketError(f"socket {path}: cannot bind: {error.strerror}") from error
        yield listener


def _lock(path: str) -> int:
    """Returns the lock beside the socket, which one daemon at a time can hold. The file stays: unlinking would race."""
    directory = os.path.dirname(path)
    create_private_directory(directory)
    found = os.stat(directory)
    if found.st_uid != _ROOT or found.st_mode & _WRITABLE_BY_OTHERS:
        raise SocketError(f"socket {path}: directory {directory} must be owned by root and writable by root only")
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise SocketError(f"socket {path}: in use by another daemon") from error
    return lock


@contextlib.contextmanager
def _bind(path: str) -> Iterator[socket.socket]:
    """Binds the path, replacing a stale socket; unlinks it at the end if it is still this socket."""
    _remove_stale(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        # bind(2) creates the file with the umask's mode; with a chmod afterwards, others could connect in between.
        before = os.umask(0o177)
        try:
            listener.bind(path)
        finally:
            os.umask(before)
        own = os.stat(path)
        try:
            yield listener
        finally:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(own, os.stat(path)):
                    os.unlink(path)


def _remove_stale(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise SocketError(f"socket {path}: exists and is not a socket")
        os.unlink(path)
