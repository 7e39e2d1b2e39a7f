"""Network namespaces: opens and checks them, and moves the calling thread into one for a moment.

A network namespace belongs to a thread, not to the process, and a socket stays in the namespace in which it was opened.
To work in a sandbox, a thread enters it, opens a socket (and writes sysctls, whose files show the namespace of the
thread that opens them), and returns at once; other threads are not affected. A thread that cannot return would do the
next pod's work in this pod's namespace, so the process exits instead.
"""

from __future__ import annotations

import fcntl
import functools
import os
import sys
from types import TracebackType

from cni_contrail.link.errors import NetnsError
from cni_contrail.quoting import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CLONE_NEWNET = 0x40000000
_NS_GET_NSTYPE = 0xB703  # ioctl_ns(2)
_OWN = "/proc/thread-self/ns/net"
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # opening a pipe must not block

if sys.version_info >= (3, 12):

    def _setns(fd: int) -> None:
        os.setns(fd, _CLONE_NEWNET)

else:

    @functools.cache
    def _libc() -> Any:
        import ctypes  # takes 2 ms: only interpreters before 3.12 need it

        return ctypes.CDLL(None, use_errno=True), ctypes.get_errno

    def _setns(fd: int) -> None:
        libc, get_errno = _libc()
        if libc.setns(fd, _CLONE_NEWNET) != 0:
            raise OSError(get_errno(), os.strerror(get_errno()))


class InNetns:
    """`with InNetns(fd):` moves the calling thread into the network namespace `fd`; do not `await` inside.

    Raises NetnsError if the thread cannot enter. If it cannot return, the process exits with status 70.
    """

    __slots__ = ("_home", "_target")

    def __init__(self, netns_fd: int) -> None:
        self._target = netns_fd

    def __enter__(self) -> None:
        try:
            self._home = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise NetnsError(f"own network namespace: cannot open: {error.strerror}") from error
        try:
            _setns(self._target)
        except OSError as error:
            os.close(self._home)
            raise NetnsError(f"network namespace: cannot enter: {error.strerror}") from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            _setns(self._home)
        except OSError as stuck:
            os.write(2, f"cannot return from a sandbox's network namespace: {stuck.strerror}\n".encode())
            os._exit(os.EX_SOFTWARE)  # no handler may run in the wrong namespace
        os.close(self._home)


def open_netns(path: str) -> int:
    """Opens the network namespace at `path` and returns its descriptor, which the caller closes.

    Raises NetnsError if the path does not exist or is not a network namespace.
    """
    try:
        fd = os.open(path, _OPEN_FLAGS)
    except (OSError, ValueError) as error:
        raise cannot_be_opened(path, error) from error
    return checked_netns(fd, path)


def checked_netns(fd: int, path: str) -> int:
    """Returns the descriptor if it is a network namespace; otherwise closes it and raises NetnsError."""
    if not _is_netns(fd):
        os.close(fd)
        raise NetnsError(f"{cut(path)} is not a network namespace")
    return fd


def cannot_be_opened(path: str, error: OSError | ValueError) -> NetnsError:
    """Converts a failure to open the path to a NetnsError."""
    reason = error.strerror if isinstance(error, OSError) else error
    return NetnsError(f"network namespace {cut(path)}: cannot open: {reason}")


def is_netns(path: str) -> bool:
    """Returns whether there is a network namespace at the path."""
    try:
        os.close(open_netns(path))
    except NetnsError:
        return False
    return True


def open_own_netns() -> int:
    """Opens the calling thread's network namespace and returns its descriptor, which the caller closes."""
    return os.open(_OWN, _OPEN_FLAGS)


def is_own_netns(fd: int) -> bool:
    """Returns whether the descriptor is the network namespace that the calling thread is in."""
    return os.path.samestat(os.fstat(fd), os.stat(_OWN))


def own_netns_identity() -> str:
    """Returns the device and inode of the calling thread's network namespace, unique among all that exist."""
    return _identity(os.stat(_OWN))


def netns_identity(fd: int) -> str:
    """Returns the same of the network namespace that a descriptor refers to. Once it is gone, another may get it."""
    return _identity(os.fstat(fd))


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"


def _is_netns(fd: int) -> bool:
    try:
        return fcntl.ioctl(fd, _NS_GET_NSTYPE) == _CLONE_NEWNET
    except OSError:  # not a namespace file
        return False
