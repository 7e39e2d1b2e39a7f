"""Creates and removes named network namespaces, as a runtime does for each pod sandbox.

A namespace lives while something references it: here a bind mount below /run/netns, where `ip netns` finds it.
unshare(2) moves the calling thread into the new namespace, so a helper thread does it and then ends; the caller's
threads stay in theirs.
"""

import contextlib
import ctypes
import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from cni_contrail.runtime.errors import SandboxError

NETNS_DIR = "/run/netns"

_CLONE_NEWNET = 0x40000000
_MS_BIND = 0x1000
_MS_REC = 0x4000
_MS_SHARED = 0x100000
_MNT_DETACH = 2
_OWN_NAMESPACE = "/proc/thread-self/ns/net"  # /proc/self is the main thread, which may be in another namespace

_libc = ctypes.CDLL(None, use_errno=True)


def make_sandbox(name: str) -> str:
    """Creates a network namespace with loopback down and returns its path. Raises SandboxError."""
    path = os.path.join(NETNS_DIR, name)
    try:
        _prepare_directory()
        # O_EXCL: a mount over an existing namespace would hide it.
        os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444))
        with ThreadPoolExecutor(max_workers=1) as helper:
            helper.submit(_unshare_and_mount, path).result()
    except FileExistsError as error:
        raise SandboxError(f"{path}: already exists") from error
    except OSError as error:
        remove_sandbox(path)
        raise SandboxError(f"{path}: cannot be created: {error.strerror}") from error
    return path


def remove_sandbox(path: str) -> None:
    """Removes a network namespace created here; a missing one is not an error. Raises SandboxError."""
    try:
        _detach(path)
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SandboxError(f"{path}: cannot be removed: {error.strerror}") from error


@contextlib.contextmanager
def inside(path: str) -> Iterator[None]:
    """Moves the calling thread, and processes that it starts, into a namespace for the body. Raises SandboxError."""
    try:
        target = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise SandboxError(f"{path}: cannot be entered: {error.strerror}") from error
    own = os.open(_OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _enter(target, path)
        try:
            yield
        finally:
            _enter(own, _OWN_NAMESPACE)
    finally:
        os.close(target)
        os.close(own)


def _enter(descriptor: int, path: str) -> None:
    try:
        _call("setns", descriptor, _CLONE_NEWNET)
    except OSError as error:
        raise SandboxError(f"{path}: cannot be entered: {error.strerror}") from error


def _unshare_and_mount(path: str) -> None:
    _call("unshare", _CLONE_NEWNET)
    _call("mount", _OWN_NAMESPACE.encode(), path.encode(), b"none", _MS_BIND, None)


def _prepare_directory() -> None:
    """Makes the directory a shared mount, as `ip netns` does: an unmount then propagates to all mount namespaces."""
    os.makedirs(NETNS_DIR, mode=0o755, exist_ok=True)
    directory = NETNS_DIR.encode()
    try:
        _call("mount", b"", directory, b"none", _MS_SHARED | _MS_REC, None)
    except OSError as error:
        if error.errno != errno.EINVAL:  # not a mount yet
            raise
        _call("mount", directory, directory, b"none", _MS_BIND | _MS_REC, None)
        _call("mount", b"", directory, b"none", _MS_SHARED | _MS_REC, None)


def _detach(path: str) -> None:
    try:
        # Lazy, since processes may still be in the namespace.
        _call("umount2", path.encode(), _MNT_DETACH)
    except OSError as error:
        if error.errno != errno.EINVAL:  # not a mount
            raise


def _call(function: str, *arguments: object) -> None:
    if getattr(_libc, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
