"""Network namespaces of virtual networks: `contrail-<vni>` below /run/netns, where `ip netns` finds them, too.

A namespace lives as long as something holds it. Here that is a bind mount, so it outlives the process that created it;
the name says whose it is, and no other state is kept. The process must be in the host's mount namespace.

Not promised: that a namespace has a bridge or a filter; the reconciler gives it both.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import threading
from collections.abc import Callable, Iterator

from cni_contrail.deadline import Deadline
from cni_contrail.link.errors import NetnsError, NotReadyError
from cni_contrail.link.host_side import DIRECTORY, network_namespaces
from cni_contrail.link.netns import open_netns

_MS_BIND, _MS_REC, _MS_PRIVATE, _MS_SHARED = 0x1000, 0x4000, 0x40000, 0x100000
_MNT_DETACH = 2
_CLONE_NEWNS, _CLONE_NEWNET = 0x20000, 0x40000000
_VOLATILE = "/run"
_OWN = "/proc/thread-self/ns/net"
_LOCK_TIMEOUT = 5.0  # seconds; each owner needs milliseconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02


def name_of(vni: int) -> str:
    """Returns the name of a network's namespace."""
    return f"contrail-{vni}"


def vni_of(name: str) -> int:
    """Returns the number of the network of a namespace."""
    return int(name.rpartition("-")[2])


class Namespaces:
    """The namespaces below a directory; methods raise NetnsError, or NotReadyError if it is locked for over 5 s.

    The directory is locked while it changes, as `ip netns` does: two mounts on one path would outlive a deletion.
    """

    def __init__(self, directory: str = DIRECTORY) -> None:
        self._directory = directory

    def path(self, vni: int) -> str:
        """Returns where a network's namespace is, or will be."""
        return f"{self._directory}/{name_of(vni)}"

    def existing(self) -> set[int]:
        """Returns the numbers of the networks that have a namespace, or a leftover of one."""
        return {vni_of(name) for name in network_namespaces(self._directory)}

    def open(self, vni: int) -> int:
        """Returns a descriptor of the network's namespace, which the caller closes; creates it if needed."""
        try:
            return open_netns(self.path(vni))
        except NetnsError:
            # Missing, or the mount is gone (a file remains): nothing in it can be reached any more.
            self._create(vni)
        return open_netns(self.path(vni))

    def is_current(self, vni: int, netns: int) -> bool:
        """Returns whether the descriptor is still that of the network's namespace."""
        try:
            return os.path.samestat(os.fstat(netns), os.stat(self.path(vni)))
        except OSError:
            return False

    def delete(self, vni: int) -> None:
        """Removes the mount; the namespace goes with its last user. Idempotent."""
        path = self.path(vni)
        if not os.path.lexists(path):
            return
        with self._locked_directory():
            _call("umount2", path, _MNT_DETACH, ignore=(errno.EINVAL, errno.ENOENT))
            try:
                os.unlink(path)
            except FileNotFoundError:
                return
            except OSError as error:
                raise NetnsError(f"{path}: cannot remove: {error.strerror}") from error

    def _create(self, vni: int) -> None:
        path = self.path(vni)
        os.makedirs(self._directory, mode=0o755, exist_ok=True)
        with self._locked_directory():
            if _is_namespace(path):  # created by another process meanwhile
                return
            self._share_directory()
            try:
                os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o444))
            except OSError as error:
                raise NetnsError(f"{path}: cannot create: {error.strerror}") from error
            _in_new_namespace(lambda: _call("mount", _OWN, path, "none", _MS_BIND, None))

    @contextlib.contextmanager
    def _locked_directory(self) -> Iterator[None]:
        try:
            directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise NetnsError(f"{self._directory}: cannot open: {error.strerror}") from error
        try:
            for _ in Deadline(_LOCK_TIMEOUT).attempts(_FIRST_PAUSE, _LONGEST_PAUSE):
                if try_lock(directory, fcntl.LOCK_EX):
                    break
            else:
                raise NotReadyError(f"{self._directory}: locked by another process for over {_LOCK_TIMEOUT:g} s")
            yield
        finally:
            os.close(directory)

    def _share_directory(self) -> None:
        """Makes the directory a shared mount, so that a namespace that is removed goes in every mount namespace."""
        try:
            _call("mount", "", self._directory, "none", _MS_SHARED | _MS_REC, None)
        except NetnsError:  # no mount of its own yet
            _call("mount", self._directory, self._directory, "none", _MS_BIND | _MS_REC, None)
            _call("mount", "", self._directory, "none", _MS_SHARED | _MS_REC, None)


def try_lock(descriptor: int, operation: int) -> bool:
    """Locks a file (LOCK_SH or LOCK_EX) until all its descriptors are closed; returns whether nobody else holds it."""
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def enter_private_namespaces() -> str:
    """Moves the calling thread into a network and a mount namespace of its own, for as long as it lives.

    Returns an empty directory for namespaces of networks, which only this thread and its children see. Raises
    NetnsError.
    """
    _call("unshare", _CLONE_NEWNET | _CLONE_NEWNS)
    _call("mount", "", "/", "none", _MS_PRIVATE | _MS_REC, None)
    _call("mount", "none", _VOLATILE, "tmpfs", 0, None)
    return f"{_VOLATILE}/netns"


def _is_namespace(path: str) -> bool:
    try:
        os.close(open_netns(path))
    except NetnsError:
        return False
    return True


def _in_new_namespace(work: Callable[[], None]) -> None:
    """Runs `work` in a new network namespace, in a thread of its own, which ends in it."""
    errors: list[NetnsError] = []

    def run() -> None:
        try:
            _call("unshare", _CLONE_NEWNET)
            work()
        except NetnsError as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="new-netns")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def _call(function: str, *arguments: str | int | None, ignore: tuple[int, ...] = ()) -> None:
    """Calls a function of the C library; raises NetnsError."""
    encoded = [os.fsencode(each) if isinstance(each, str) else each for each in arguments]
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, function)(*encoded) != 0 and (number := ctypes.get_errno()) not in ignore:
        shown = " ".join(str(each) for each in arguments if isinstance(each, str) and each)
        raise NetnsError(f"{function} {shown}".rstrip() + f": {os.strerror(number)}")
